/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a response is to be compressed, and how. */
#ifndef COMPRESS_CHOICE_H
#define COMPRESS_CHOICE_H

#include <monkey/request.h>
#include <monkey/response.h>

#include "settings.h"

/* The fields of a response that decide. Valid until the response is changed. */
struct facts {
    unsigned status;
    mk_str type, etag;
    bool is_coded, is_part;    /* compressed already; or a part, or something that a sum was made of */
    bool no_transform, is_own; /* Cache-Control; not for everybody */
    bool has_date;             /* Last-Modified */
    bool varies;               /* by Accept-Encoding, as it says itself */
};

void compress_facts_read(struct facts *f, const struct mk_response *response);

/* Would it be compressed for a client that accepts it? */
bool compress_is_worth_it(const struct settings *s, const struct mk_request *request,
                          const struct mk_response *response, const struct facts *f);
/* May it be, for this client? Not when that would let a stranger learn what is in it. */
bool compress_is_safe(const struct settings *s, const struct mk_request *request,
                      const struct mk_response *response);
/* What the client likes best; CODINGS: as it is. */
enum coding compress_choose(const struct settings *s, const struct mk_request *request);

#endif
