/* SPDX-License-Identifier: Apache-2.0 */
/* Login with an OpenID provider. The package duda-oidc implements it; the service only keeps the user's
 * name. */
#define DUDA_USE "duda-oidc"
#include <duda.h>
#include <duda/oidc.h>
#include <errno.h>

struct profile {
    mk_str name;
};
static const struct duda_schema_field profile_fields[] = {
    DUDA_STRING(struct profile, name, .max_length = 255, .optional = true)};
static const struct duda_schema profile_schema =
    DUDA_SCHEMA(struct profile, profile_fields, .allow_unknown = true);

/* Stores the name of the user in the session only, because it may change at the provider. */
static int keep_name(struct duda_ctx *d, mk_str user, mk_str claims)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors;
    struct profile profile = {.name = MK_STR_NULL};
    int e = duda_json_read(claims, &profile_schema, &memory, NULL, &profile, &errors);
    if (e)
        return e == -ENOMEM ? e : duda_problem(d, 403, "the claim `name` is not a short text");
    return duda_session_set(d, "name", profile.name.len ? profile.name : user);
}

static int show(struct duda_ctx *d)
{
    mk_str name;
    int e = duda_session_get(d, "name", &name);
    if (e && e != -ENOENT)
        return e;
    const struct duda_entry page[] = {{"name", duda_value_text(name)}};
    return duda_render(d, "oidc.html", duda_value_map(page, MK_LEN(page)));
}

static const struct duda_oidc_login login = DUDA_OIDC_LOGIN(.on_login = keep_name);

DUDA_SERVICE(oidc,
             DUDA_POST("/logged-out", duda_oidc_back_channel_log_out,
                       "Receives a logout token from the provider, when the user has logged out there.",
                       .data = &login),
             DUDA_BEFORE(duda_csrf_check), DUDA_GET("/", show, "The page."),
             DUDA_GET("/in", duda_oidc_log_in, "Sends the browser to the provider.", .data = &login),
             DUDA_GET("/callback", duda_oidc_callback, "Receives the browser from the provider.",
                      .data = &login),
             DUDA_POST("/out", duda_oidc_log_out, "Logs out, here and at the provider.", .data = &login));
