/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: sign up, log in, show the user's devices, log out here or everywhere. */
#define DUDA_USE "duda-kv", "duda-auth"
#include <duda.h>
#include <duda/auth.h>
#include <duda/kv.h>
#include <errno.h>

enum { NAME_MAX_ = 40, PASSWORD_MIN = 8 };

/* The sessions of the user, as values for the page. */
static int list_devices(struct duda_ctx *d, mk_str user, struct duda_value *out)
{
    const struct duda_session_info *devices;
    size_t n;
    int e = duda_session_list(d, user, &devices, &n);
    struct duda_value *items = e ? NULL : duda_alloc(d, (n + 1) * sizeof *items);
    struct duda_entry *maps = items ? duda_alloc(d, (3 * n + 1) * sizeof *maps) : NULL;
    if (!maps)
        return e ? e : -ENOMEM;
    for (size_t i = 0; i < n; i++, maps += 3) {
        maps[0] = (struct duda_entry){"ip", duda_value_text(devices[i].client_ip)};
        maps[1] = (struct duda_entry){"agent", duda_value_text(devices[i].user_agent)};
        maps[2] = (struct duda_entry){"is_current", duda_value_bool(devices[i].is_current)};
        items[i] = duda_value_map(maps, 3);
    }
    *out = duda_value_list(items, n);
    return 0;
}

static int show_with(struct duda_ctx *d, const char *error)
{
    mk_str user;
    struct duda_value devices = duda_value_null();
    int e = duda_session_user(d, &user);
    e = e || !user.p ? e : list_devices(d, user, &devices);
    const struct duda_entry page[] = {{"devices", devices}, {"error", duda_value_cstr(error)}};
    return e ? e : duda_render(d, "login.html", duda_value_map(page, MK_LEN(page)));
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

/* Returns the key of the user in the store; absent if a field of the form is invalid. */
static mk_str read_form(struct duda_ctx *d)
{
    mk_str user = duda_form(d, "user"), password = duda_form(d, "password");
    bool is_valid = user.len && user.len <= NAME_MAX_ && password.len >= PASSWORD_MIN &&
                    password.len <= DUDA_PASSWORD_MAX;
    return is_valid ? duda_sprintf(d, "user/%.*s", MK_STR_ARG(user)) : MK_STR_NULL;
}

static int enter(struct duda_ctx *d)
{
    int e = duda_session_log_in(d, duda_form(d, "user"));
    return e ? e : duda_flash_redirect(d, "success", MK_STR("Welcome."), MK_STR("/"));
}

static int log_in(struct duda_ctx *d)
{
    mk_str key = read_form(d), hash = MK_STR_NULL;
    bool matches;
    if (!key.p)
        return refuse(d, "Name or password is wrong.");
    int e = duda_kv_get(d, duda_kv_find(d, NULL), key, &hash);
    if (!e || e == -ENOENT) /* an unknown user takes as long as a wrong password */
        e = duda_password_verify(d, duda_form(d, "password"), hash, &matches);
    if (e)
        return e;
    return matches ? enter(d) : refuse(d, "Name or password is wrong.");
}

static int sign_up(struct duda_ctx *d)
{
    char hash[DUDA_PASSWORD_SIZE];
    mk_str key = read_form(d);
    if (!key.p)
        return refuse(d, "A name has 1 to 40 bytes, a password at least 8.");
    int e = duda_password_hash(d, duda_form(d, "password"), hash);
    if (!e)
        e = duda_kv_compare_and_set(d, duda_kv_find(d, NULL), key, MK_STR_NULL, mk_str_from_c(hash), 0);
    if (e == -ESTALE)
        return refuse(d, "This name is taken.");
    return e ? e : enter(d);
}

static int log_out(struct duda_ctx *d)
{
    int e = duda_session_destroy(d);
    return e ? e : duda_redirect(d, 303, MK_STR("/"));
}

static int log_out_everywhere(struct duda_ctx *d)
{
    mk_str user;
    int e = duda_session_user(d, &user);
    e = e || !user.p ? e : duda_session_revoke_all(d, user);
    return e ? e : duda_redirect(d, 303, MK_STR("/"));
}

DUDA_SERVICE(login, DUDA_BEFORE(duda_csrf_check), DUDA_GET("/", show, "The page."),
             DUDA_POST("/in", log_in, "Logs in."), DUDA_POST("/new", sign_up, "Signs up."),
             DUDA_POST("/out", log_out, "Logs out."),
             DUDA_POST("/out/everywhere", log_out_everywhere, "Logs out on all devices."));
