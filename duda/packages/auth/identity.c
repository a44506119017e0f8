/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of the client, and its roles. */
#include <duda/error.h>
#include <duda/memory.h>
#include <duda/middleware.h>
#include <duda/request.h>
#include <duda/response.h>
#include <errno.h>

#include "auth.h"

static const char identity_key;

const struct duda_identity *duda_identity(struct duda_ctx *d)
{
    return duda_attached(d, &identity_key);
}

int duda_identity_set(struct duda_ctx *d, const struct duda_identity *identity)
{
    struct duda_identity *copy = duda_alloc(d, sizeof *copy);
    if (!copy)
        return -ENOMEM;
    *copy = *identity;
    return duda_attach(d, &identity_key, copy, NULL);
}

static bool identity_has_role(const struct duda_identity *identity, mk_str role)
{
    for (size_t i = 0; identity && i < identity->n_roles; i++)
        if (mk_str_eq(identity->roles[i], role))
            return true;
    return false;
}

bool duda_has_role(struct duda_ctx *d, const char *role)
{
    return identity_has_role(duda_identity(d), mk_str_from_c(role));
}

/* Returns the text without the characters that a quoted string cannot contain. Realms and errors are
 * constants of the service or its configuration, so nothing is escaped. */
static mk_str copy_quotable_text(struct duda_ctx *d, const char *text)
{
    char *out = duda_alloc(d, strlen(text) + 1), *p = out;
    for (; out && *text; text++)
        if ((unsigned char)*text >= ' ' && *text != 127 && *text != '"' && *text != '\\')
            *p++ = *text;
    if (out)
        *p = '\0';
    return out ? mk_str_from_c(out) : MK_STR_NULL;
}

duda_verdict duda_auth_challenge(struct duda_ctx *d, const char *scheme, const char *realm, const char *error)
{
    mk_str name = copy_quotable_text(d, realm ? realm : "restricted"),
           reason = copy_quotable_text(d, error ? error : "");
    mk_str value = duda_sprintf(d, "%s realm=\"%s\"%s%s%s", scheme, name.p ? name.p : "",
                                error ? ", error=\"" : "", reason.p ? reason.p : "", error ? "\"" : "");
    int e = value.p ? duda_header_set(d, "WWW-Authenticate", value) : -ENOMEM;
    if (!e && !duda_error_reason(d))
        (void)duda_reason(d, 401, error ? "the credentials are invalid: %s" : "the request lacks credentials",
                          error);
    return e ? e : 401;
}

static int reject_role(struct duda_ctx *d, const struct duda_identity *identity)
{
    if (mk_str_eq(mk_str_from_c(identity->scheme), MK_STR("Bearer"))) {
        int e = duda_header_set(d, "WWW-Authenticate", MK_STR("Bearer error=\"insufficient_scope\""));
        if (e)
            return e;
    }
    return 403;
}

duda_verdict duda_require_role(struct duda_ctx *d)
{
    const struct duda_identity *identity = duda_identity(d);
    mk_str roles = mk_str_from_c(duda_middleware_data(d)), role;
    if (!identity || !roles.len)
        return duda_reason(d, -EINVAL,
                           "duda_require_role() needs a `.data` with the role, and middleware "
                           "before it that authenticates the client");
    while ((role = mk_str_word(&roles)).len)
        if (identity_has_role(identity, role))
            return DUDA_NEXT;
    return reject_role(d, identity);
}

mk_str duda_auth_credentials(struct duda_ctx *d, mk_str scheme)
{
    mk_str value = duda_header(d, "Authorization");
    return mk_str_eq_nocase(mk_str_word(&value), scheme) ? mk_str_trim(value) : MK_STR_NULL;
}
