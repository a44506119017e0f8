/* SPDX-License-Identifier: Apache-2.0 */
/* The handler `status STATUS [TEXT]`: a fixed response to every request. */
#ifndef MK_WEB_STATUS_HANDLER_H
#define MK_WEB_STATUS_HANDLER_H

#include <monkey/handler.h>

struct mk_status_handler {
    unsigned status;
    mk_str text; /* body, as text/plain; absent: none, or the error page for statuses of 400 and above */
};

/* Is the status allowed? It must be at least 200 and require no other information, such as a range (206), a
 * location or a precondition. */
bool mk_status_handler_allows(unsigned status);
/* Can a response with this status have a body (RFC 9110, sections 15.3.5 and 15.3.6)? */
bool mk_status_handler_may_have_body(unsigned status);
/* Is the handler's status an error? `data` is the data of the route. */
bool mk_status_handler_is_error(const void *data);

/* The handler; its data is a struct mk_status_handler. */
extern const struct mk_handler mk_status_handler;

#endif
