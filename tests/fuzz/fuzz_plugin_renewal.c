/* SPDX-License-Identifier: Apache-2.0 */
/* Responses of an authority that the acme plugin parses: renewal times (RFC 9773), and profiles of a directory. */
#include <stdint.h>
#include <stdlib.h>

#include "acme/helper/renewal_info.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char buf[300];
    struct mk_buf offered = mk_buf_fixed(buf, sizeof buf);
    struct acme_renewal_window w;
    int64_t t;
    json_t *o = json_loadb((const char *)data, size, 0, NULL);
    if (acme_renewal_window_parse(o, &w) && (w.start >= w.end || w.start < -86400 || w.end > 253402387200))
        abort();
    if (acme_rfc3339_parse(mk_str_of((const char *)data, size), &t) && (t < -86400 || t > 253402387200))
        abort();
    if (!acme_profile_is_offered(o, "shortlived", &offered) && offered.len > sizeof buf)
        abort();
    json_decref(o);
    return 0;
}
