/* SPDX-License-Identifier: Apache-2.0 */
/* Redirects, and the handler `redirect STATUS URL`. */
#ifndef MK_WEB_REDIRECT_H
#define MK_WEB_REDIRECT_H

#include <monkey/handler.h>

#include "web/response.h"

/* Redirects to the request path as the client wrote it, plus a trailing slash and the query. False: out of
 * memory. */
bool mk_redirect_to_folder(struct mk_request *request, struct mk_response *response,
                           unsigned status) MK_MUST_USE;

struct mk_redirect {
    unsigned status;
    mk_str url; /* target; if the URL ends after its host ("https://example.org"), the path and query of the
                 * request are appended */
};

/* Is the URL valid in Location: an absolute URL with a host, or a path on this host? */
bool mk_redirect_is_valid_url(mk_str url);

/* The handler; its data is a struct mk_redirect. */
extern const struct mk_handler mk_redirect;

#endif
