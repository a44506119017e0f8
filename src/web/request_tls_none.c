/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that cannot load TLS: at most, a trusted proxy reports that the client uses it. */
#include <monkey/tls.h>
#include <string.h>

#include "web/request_type.h"

mk_str mk_request_client_certificate(const struct mk_request *r)
{
    (void)r;
    return MK_STR_NULL;
}

bool mk_request_tls_sized(const struct mk_request *r, struct mk_tls_info *out, size_t out_size)
{
    if (out)
        memset(out, 0, mk_min(out_size, sizeof *out));
    return mk_request_is_secure(r);
}
