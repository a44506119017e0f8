/* SPDX-License-Identifier: Apache-2.0 */
/* Content negotiation. */
#include <duda.h>

#include "service/response.h"

int duda_accepts(struct duda_ctx *d, const char *const *types)
{
    unsigned best_q = 0;
    int best = -1;
    for (int i = 0; d->request && types[i]; i++) {
        unsigned q = mk_request_accepts_type(d->request, mk_str_from_c(types[i]));
        if (q > best_q) {
            best = i;
            best_q = q;
        }
    }
    (void)duda_header_add(d, "Vary", MK_STR("Accept"));
    return best;
}

int duda_accepts_language(struct duda_ctx *d, const char *const *languages)
{
    int best = duda_negotiate_language(duda_header_view(d, "Accept-Language"), languages);
    (void)duda_header_add(d, "Vary", MK_STR("Accept-Language"));
    return best < 0 ? 0 : best;
}

bool duda_client_prefers_html(struct duda_ctx *d)
{
    unsigned problem = mk_request_accepts_type(d->request, MK_STR("application/problem+json")),
             json = mk_request_accepts_type(d->request, MK_STR("application/json")),
             html = mk_request_accepts_type(d->request, MK_STR("text/html"));
    return html > problem && html > json;
}
