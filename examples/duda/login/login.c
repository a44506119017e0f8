/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: sign up, log in, show a page to logged-in users, log out. Passwords are hashed in a thread,
 * because hashing is slow by design. */
#define DUDA_USE "duda-kv"
#include <duda.h>
#include <duda/crypto.h>
#include <duda/kv.h>
#include <errno.h>

enum { NAME_MAX_ = 40, PASSWORD_MIN = 8 };

static int show_with(struct duda_ctx *d, const char *error)
{
    mk_str user;
    int e = duda_session_get(d, "user", &user);
    if (e && e != -ENOENT)
        return e;
    const struct duda_entry page[] = {
        {"user", duda_value_text(user)},
        {"token", duda_value_text(duda_csrf_token(d))},
        {"error", duda_value_cstr(error)},
    };
    return duda_render(d, "login.html", duda_value_map(page, MK_LEN(page)));
}

static int show(struct duda_ctx *d)
{
    return show_with(d, NULL);
}

static int refuse(struct duda_ctx *d, const char *error)
{
    int e = show_with(d, error);
    return e ? e : duda_status(d, 403);
}

/* A job for a thread. It holds copies, because the handler may end before the job. */
struct check {
    char password[DUDA_PASSWORD_MAX + 1], hash[DUDA_PASSWORD_SIZE];
    bool is_right;
};

static int hash(void *job)
{
    struct check *c = job;
    return duda_password_hash(mk_str_from_c(c->password), c->hash);
}

static int compare(void *job)
{
    struct check *c = job;
    c->is_right =
        duda_password_verify(mk_str_from_c(c->password), c->hash[0] ? mk_str_from_c(c->hash) : MK_STR_NULL);
    return 0;
}

static bool read_form(struct duda_ctx *d, mk_str *key, struct check *c)
{
    mk_str user = duda_form(d, "user"), password = duda_form(d, "password");
    *c = (struct check){.is_right = false};
    if (!user.len || user.len > NAME_MAX_ || password.len < PASSWORD_MIN || password.len > DUDA_PASSWORD_MAX)
        return false;
    memcpy(c->password, password.p, password.len);
    *key = duda_sprintf(d, "user/%.*s", MK_STR_ARG(user));
    return key->p != NULL;
}

static int enter(struct duda_ctx *d)
{
    int e = duda_session_regenerate(d); /* prevents session fixation */
    if (!e)
        e = duda_session_set(d, "user", duda_form(d, "user"));
    return e ? e : duda_redirect(d, 303, MK_STR("/"));
}

static int log_in(struct duda_ctx *d)
{
    struct check c;
    mk_str key, stored = MK_STR_NULL;
    if (!read_form(d, &key, &c))
        return refuse(d, "Name or password is wrong.");
    int e = duda_kv_get(d, duda_kv_find(d, NULL), key, &stored);
    if (!e && stored.len < sizeof c.hash)
        memcpy(c.hash, stored.p, stored.len);
    if (!e || e == -ENOENT)
        e = duda_offload(d, NULL, compare, &c, sizeof c);
    if (e)
        return e;
    return c.is_right ? enter(d) : refuse(d, "Name or password is wrong.");
}

static int sign_up(struct duda_ctx *d)
{
    struct check c;
    mk_str key;
    if (!read_form(d, &key, &c))
        return refuse(d, "A name has 1 to 40 bytes, a password at least 8.");
    int e = duda_offload(d, NULL, hash, &c, sizeof c);
    if (!e)
        e = duda_kv_compare_and_set(d, duda_kv_find(d, NULL), key, MK_STR_NULL, mk_str_from_c(c.hash), 0);
    if (e == -ESTALE)
        return refuse(d, "This name is taken.");
    return e ? e : enter(d);
}

static int log_out(struct duda_ctx *d)
{
    int e = duda_session_destroy(d);
    return e ? e : duda_redirect(d, 303, MK_STR("/"));
}

DUDA_SERVICE(login, DUDA_BEFORE(duda_csrf_check), DUDA_GET("/", show, "The page."),
             DUDA_POST("/in", log_in, "Logs in."), DUDA_POST("/new", sign_up, "Signs up."),
             DUDA_POST("/out", log_out, "Logs out."));
