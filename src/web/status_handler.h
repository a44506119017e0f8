/* SPDX-License-Identifier: Apache-2.0 */
/* The handler `status STATUS [TEXT]`: the same answer to every request. */
#ifndef MK_WEB_STATUS_HANDLER_H
#define MK_WEB_STATUS_HANDLER_H

#include <monkey/handler.h>

struct mk_status_handler {
    unsigned status;
    mk_str text; /* the content, as text/plain; absent: none, or the error page of a status from 400 on */
};

/* May the handler answer with this status? From 200 on it describes an answer that needs nothing else: no
 * range (206), no location, no condition. */
bool mk_status_handler_allows(unsigned status);
/* May an answer with this status have content? (RFC 9110, sections 15.3.5 and 15.3.6) */
bool mk_status_handler_may_have_body(unsigned status);
/* Is it an error? `data` is that of a route. */
bool mk_status_handler_is_error(const void *data);

/* Its data is a struct mk_status_handler. */
extern const struct mk_handler mk_status_handler;

#endif
