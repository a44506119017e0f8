/* SPDX-License-Identifier: Apache-2.0 */
/* Error pages: the host's own file, or a small built-in page. */
#ifndef MK_WEB_ERROR_PAGE_H
#define MK_WEB_ERROR_PAGE_H

#include "web/response.h"
#include "web/web.h"

/* Turns the response into an error response with that status; it keeps headers that were added before, such
 * as Allow and Content-Range. `host` is NULL if the request failed before its host was known. Never fails: if
 * out of memory, the page is empty. */
void mk_error_page_fill(const struct mk_vhost *host, struct mk_request *request, struct mk_response *response,
                        unsigned status);

/* Removes the body and the block headers of the response, and sets the status. */
void mk_error_page_clear(struct mk_response *response, unsigned status);

/* Returns the host's own page for that status, relative to the document root; absent: none. */
mk_str mk_error_page_find(const struct mk_vhost *host, unsigned status);

#endif
