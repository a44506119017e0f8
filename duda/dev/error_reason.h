/* SPDX-License-Identifier: Apache-2.0 */
/* Under `monkey run`, the page of an error that the server or Duda has made says why: it has all that was
 * logged about the request, and the routes there are. */
#ifndef DUDA_DEV_ERROR_REASON_H
#define DUDA_DEV_ERROR_REASON_H

#include <monkey/plugin.h>

/* As on_log: keeps the message for the page. True: it is for the page alone. */
bool dev_error_reason_on_log(struct mk_request *request, enum mk_log_level level, mk_str message);
/* As on_response. */
void dev_error_reason_on_response(struct mk_request *request, struct mk_response *response);

/* Does the client take a page of HTML? A browser says so; other programs take anything, and a page is of no
 * use to them. */
bool dev_error_reason_accepts_html(struct mk_request *request);

#endif
