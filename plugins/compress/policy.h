/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether to compress a response, and how. */
#ifndef COMPRESS_POLICY_H
#define COMPRESS_POLICY_H

#include <monkey/request.h>
#include <monkey/response.h>

#include "settings.h"

/* The fields of a response that the decision needs. Valid until the response changes. */
struct response_info {
    unsigned status;
    mk_str type, etag;
    bool is_coded, is_part;    /* compressed already; partial, or with a digest */
    bool no_transform, is_own; /* Cache-Control; for one client alone */
    bool varies;               /* Vary names Accept-Encoding already */
};

void compress_policy_read_response(struct response_info *f, const struct mk_response *response);

/* Should the response be compressed for clients that accept it? */
bool compress_policy_is_worthwhile(const struct settings *s, const struct mk_request *request,
                                   const struct mk_response *response, const struct response_info *f);
/* Is that safe for this client? Not if an attacker could learn the content from the length. */
bool compress_policy_is_breach_safe(const struct settings *s, const struct mk_request *request,
                                    const struct mk_response *response);
/* The coding that the client prefers; CODINGS: none. */
enum coding compress_policy_choose_coding(const struct settings *s, const struct mk_request *request);

#endif
