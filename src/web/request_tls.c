/* SPDX-License-Identifier: Apache-2.0 */
/* The TLS of a request, for plugins. */
#include <monkey/sized.h>
#include <monkey/tls.h>

#include "web/exchange.h"

static struct mk_tls_conn_info tls_conn_info(const struct mk_request *r)
{
    struct mk_tls_conn_info f = {0};
    if (r->encrypted && r->ops && r->ops->tls)
        r->ops->tls(r->ops_ctx, &f);
    return f;
}

mk_str mk_request_client_certificate(const struct mk_request *r)
{
    return tls_conn_info(r).client_certificate;
}

static bool read_tls_info(const struct mk_request *r, struct mk_tls_info *out)
{
    if (!mk_request_is_secure(r) || !out)
        return mk_request_is_secure(r);
    struct mk_tls_conn_info f = tls_conn_info(r);
    *out = (struct mk_tls_info){
        .version = f.version,
        .cipher = f.cipher,
        .protocol = f.protocol,
        .server_name = f.server_name,
        .resumed = f.resumed,
        .client_subject = f.client_subject,
        .client_issuer = f.client_issuer,
        .client_serial = f.client_serial,
        .client_fingerprint = f.client_fingerprint,
        .client_expires = f.client_expires,
        .group = f.group,
    };
    return true;
}

bool mk_request_tls_sized(const struct mk_request *r, struct mk_tls_info *out, size_t out_size)
{
    struct mk_tls_info full = {0};
    bool result = read_tls_info(r, &full);
    mk_sized_out(out, out_size, &full, sizeof full);
    return result;
}
