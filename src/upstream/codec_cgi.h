/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of CGI (RFC 3875, section 4.1) that FastCGI, SCGI and uwsgi hand over. */
#ifndef MK_UPSTREAM_CODEC_CGI_H
#define MK_UPSTREAM_CODEC_CGI_H

#include "base/num.h"
#include "upstream/codec.h"

#define MK_CODEC_CGI_INVALID "a variable is invalid"

/* Are the names of all variables and the length such that they can be handed over? 0, or -EINVAL with
 * *problem. */
mk_err mk_codec_cgi_check_request(const struct mk_upstream_request_options *options, const char **problem);
/* A NUL would end a value of SCGI, and every name and value in programs of C. */
bool mk_codec_cgi_has_nul(const struct mk_upstream_request_options *options);

/* Is it a variable that the codecs write, alone? A second one would contradict the first. */
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
/* CONTENT_LENGTH, which comes first; absent if there is no content, and none is expected. */
mk_str mk_codec_cgi_content_length(const struct mk_upstream_request_options *options,
                                   char digits[MK_NUM_MAX]);

#endif
