/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that send the client elsewhere, and the handler `redirect STATUS URL`. */
#ifndef MK_WEB_REDIRECT_H
#define MK_WEB_REDIRECT_H

#include <monkey/handler.h>

#include "web/response.h"

/* To the path of the request with a slash at its end, written as the client did, with the query. False when
 * memory is out. */
bool mk_redirect_to_folder(struct mk_request *request, struct mk_response *response,
                           unsigned status) MK_MUST_USE;

struct mk_redirect {
    unsigned status;
    mk_str url; /* one that ends at its host ("https://example.org") gets path and query appended */
};

/* May a Location say so: an absolute URL with a host, or a path of this host? */
bool mk_redirect_is_valid_url(mk_str url);

/* Its data is a struct mk_redirect. */
extern const struct mk_handler mk_redirect;

#endif
