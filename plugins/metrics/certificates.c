/* SPDX-License-Identifier: Apache-2.0 */
#include "certificates.h"

void metrics_certificates_count(const struct mk_worker *w, struct certificates *out)
{
    const struct mk_vhost *host;
    struct mk_vhost_certificate c;
    int64_t now = mk_worker_now(w);
    *out = (struct certificates){0};
    for (size_t i = 0; (host = mk_worker_vhost_at(w, i)); i++) {
        if (!mk_vhost_certificate_get(host, &c))
            continue;
        out->n[CERTIFICATE_EXPIRED] += c.not_after <= now;
        out->n[CERTIFICATE_EARLY] += c.not_before > now;
        out->n[CERTIFICATE_KEPT] += c.is_outdated;
        if (!out->first_end || c.not_after < out->first_end)
            out->first_end = c.not_after;
    }
}
