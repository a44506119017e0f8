/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker.h"

struct user {
    mk_str name, email, password;
};
static const struct duda_schema_field user_fields[] = {
    DUDA_STRING(struct user, name, .pattern = "^[a-z0-9-]+$", .max_length = 40,
                .message = "A name consists of a-z, 0-9 and -."),
    DUDA_STRING(struct user, email, .format = DUDA_FORMAT_EMAIL, .max_length = 200),
    DUDA_STRING(struct user, password, .min_length = 8, .max_length = DUDA_PASSWORD_MAX),
};
static const struct duda_schema user_schema = DUDA_SCHEMA(struct user, user_fields);

const struct duda_session_auth require_login = DUDA_SESSION_AUTH(.login = "/log-in");

static int show_log_in(struct duda_ctx *d)
{
    return duda_render(d, "log-in.html",
                       duda_value_members({"next", duda_value_text(duda_query(d, "next"))}));
}

static int show_sign_up(struct duda_ctx *d)
{
    return duda_render_form(d, "sign-up.html", &user_schema, &(struct user){});
}

static int enter(struct duda_ctx *d, mk_str user, mk_str next)
{
    int e = duda_session_log_in(d, user);
    mk_str home = duda_url_for(d, "issues", duda_value_null());
    return e ? e : duda_redirect_local(d, 303, next.len ? next : home);
}

static mk_str taken_message(const struct duda_sql_violation *violation)
{
    return mk_str_eq(violation->columns, MK_STR("email")) ? MK_STR("This address has an account.")
                                                          : MK_STR("This name is taken.");
}

static int sign_up(struct duda_ctx *d)
{
    struct user user = {};
    char hash[DUDA_PASSWORD_SIZE];
    int e = duda_bind_form_or_render(d, &user_schema, &user, "sign-up.html");
    e = e ? e : duda_password_hash(d, user.password, hash);
    if (e)
        return e;
    user.password = mk_str_from_c(hash);
    e = duda_sql_query_struct(d, db(d), NULL,
                              "INSERT INTO users (name, email, password) VALUES (:name, :email, :password)",
                              &user_schema, &user);
    if (e == -EEXIST)
        return duda_flash_redirect(d, "error", taken_message(duda_sql_last_violation(d)),
                                   duda_url_for(d, "show_sign_up", duda_value_null()));
    return e ? e : enter(d, user.name, MK_STR_NULL);
}

static int log_in(struct duda_ctx *d)
{
    struct duda_sql_value hash;
    mk_str name = duda_form(d, "name");
    bool matches;
    int e = duda_sql_query_cell(d, db(d), &hash, "SELECT password FROM users WHERE name = $1",
                                duda_sql_text(name));
    e = e && e != -ENOENT ? e : duda_password_verify(d, duda_form(d, "password"), hash.text, &matches);
    if (e)
        return e;
    if (!matches)
        return duda_flash_redirect(d, "error", MK_STR("Name or password is wrong."),
                                   duda_url_for(d, "show_log_in", duda_value_null()));
    return enter(d, name, duda_form(d, "next"));
}

static int log_out(struct duda_ctx *d)
{
    int e = duda_session_destroy(d);
    return e ? e : duda_redirect(d, 303, duda_url_for(d, "issues", duda_value_null()));
}

DUDA_ROUTES(users, DUDA_GET("/sign-up", show_sign_up, "Shows the form to sign up."),
            DUDA_POST("/sign-up", sign_up, "Creates a user.", .form = &user_schema, .rate = "10/minute"),
            DUDA_GET("/log-in", show_log_in, "Shows the form to log in."),
            DUDA_POST("/log-in", log_in, "Begins a session.", .rate = "10/minute"),
            DUDA_POST("/log-out", log_out, "Ends the session."));
