/* SPDX-License-Identifier: Apache-2.0 */
/* CGI variables (RFC 3875, section 4.1) as sent over FastCGI, SCGI and uwsgi. */
#ifndef MK_UPSTREAM_CODEC_CGI_H
#define MK_UPSTREAM_CODEC_CGI_H

#include "base/num.h"
#include "upstream/codec.h"

#define MK_CODEC_CGI_INVALID "a variable is invalid"

/* Checks the variable names and the length. Returns 0, or -EINVAL and a message in *problem. */
mk_err mk_codec_cgi_check_request(const struct mk_upstream_request_options *options, const char **problem);
/* Does any name or value contain a NUL? A NUL would end a value in SCGI, and any name or value in a C
 * program. */
bool mk_codec_cgi_has_nul(const struct mk_upstream_request_options *options);

/* Is the variable written by the codec itself? A second variable of that name would contradict it. */
static inline bool mk_codec_cgi_is_reserved(mk_str name)
{
    switch (name.len) {
    case sizeof "CONTENT_LENGTH" - 1:
        return memcmp(name.p, "CONTENT_LENGTH", sizeof "CONTENT_LENGTH" - 1) == 0;
    case sizeof "SCGI" - 1:
        return memcmp(name.p, "SCGI", sizeof "SCGI" - 1) == 0;
    default:
        return false;
    }
}
/* The value of CONTENT_LENGTH, the first variable; absent if the body is empty and the method usually has
 * none. */
mk_str mk_codec_cgi_content_length(const struct mk_upstream_request_options *options,
                                   char digits[MK_NUM_MAX]);

#endif
