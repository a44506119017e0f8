/* SPDX-License-Identifier: Apache-2.0 */
/* Under `monkey run`, error pages of the server or Duda explain the error: they show the log messages of the
 * request and the existing routes. */
#ifndef DUDA_DEV_ERROR_REASON_H
#define DUDA_DEV_ERROR_REASON_H

#include <monkey/plugin.h>

/* Implements on_log: keeps the message for the page. True: the message is only for the page. */
bool dev_error_reason_on_log(struct mk_request *request, enum mk_log_level level, mk_str message);
/* Implements on_response. */
void dev_error_reason_on_response(struct mk_request *request, struct mk_response *response);

/* Does the client accept an HTML page? Only browsers ask for HTML; other programs accept anything, but an
 * HTML page is useless to them. */
bool dev_error_reason_accepts_html(struct mk_request *request);

#endif
