/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the package in the session: each belongs to one provider. */
#include <duda/crypto.h>
#include <duda/memory.h>
#include <duda/session.h>
#include <errno.h>

#include "oidc.h"

mk_str oidc_session_name(struct duda_ctx *d, const struct oidc_provider *p, const char *name)
{
    return duda_sprintf(d, "oidc.%.*s.%s", MK_STR_ARG(p->settings->base.name), name);
}

int oidc_session_put(struct duda_ctx *d, const struct oidc_provider *p, const char *name, mk_str value)
{
    mk_str full = oidc_session_name(d, p, name);
    return full.p ? duda_session_set(d, full.p, value) : -ENOMEM;
}

int oidc_session_get(struct duda_ctx *d, const struct oidc_provider *p, const char *name, mk_str *out)
{
    mk_str full = oidc_session_name(d, p, name);
    *out = MK_STR_NULL;
    int e = full.p ? duda_session_get(d, full.p, out) : -ENOMEM;
    if (e)
        return e == -ENOENT ? 0 : e;
    *out = duda_strdup(d, *out);
    return out->p ? 0 : -ENOMEM;
}

int oidc_session_take(struct duda_ctx *d, const struct oidc_provider *p, const char *name, mk_str *out)
{
    int e = oidc_session_get(d, p, name, out);
    return e || !out->p ? e : oidc_session_put(d, p, name, MK_STR_NULL);
}

mk_str oidc_random_text(struct duda_ctx *d)
{
    char buf[64];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    duda_random_text(&out, OIDC_SECRET_BYTES);
    return duda_strdup(d, mk_buf_str(&out));
}
