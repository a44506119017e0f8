/* SPDX-License-Identifier: Apache-2.0 */
/* The page that goes with an error: the host's own file, or a small built-in one. */
#ifndef MK_WEB_ERROR_PAGE_H
#define MK_WEB_ERROR_PAGE_H

#include "web/response.h"
#include "web/web.h"

/* Makes the response an answer with that status; fields that were added already (Allow, Content-Range) stay.
 * `host` is NULL when the request died before its host was known. Never fails: without memory the page is
 * empty. */
void mk_error_page_fill(const struct mk_vhost *host, struct mk_request *request, struct mk_response *response,
                        unsigned status);

/* The host's own page for that status, seen from the document root; absent if it has none. */
mk_str mk_error_page_find(const struct mk_vhost *host, unsigned status);

#endif
