/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether to compress a response, and how. */
#ifndef COMPRESS_POLICY_H
#define COMPRESS_POLICY_H

#include <monkey/request.h>
#include <monkey/response.h>

#include "settings.h"

/* The properties of a response that affect the decision. They are valid until the response changes. */
struct response_info {
    unsigned status;
    mk_str type, etag;
    bool is_coded, is_part;    /* already compressed; partial or with a digest */
    bool no_transform, is_own; /* whether Cache-Control contains no-transform, and private */
    bool varies;               /* Vary lists Accept-Encoding already */
};

void compress_policy_read_response(struct response_info *f, const struct mk_response *response);

/* Returns whether compression is worthwhile for this response. */
bool compress_policy_is_worthwhile(const struct settings *s, const struct mk_request *request,
                                   const struct mk_response *response, const struct response_info *f);
/* Returns false if an attacker could infer the body from its compressed length (BREACH). */
bool compress_policy_is_breach_safe(const struct settings *s, const struct mk_request *request,
                                    const struct mk_response *response);
/* Returns the coding that the client prefers; CODINGS if it accepts none. */
enum coding compress_policy_choose_coding(const struct settings *s, const struct mk_request *request);

#endif
