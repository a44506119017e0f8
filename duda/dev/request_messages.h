/* SPDX-License-Identifier: Apache-2.0 */
/* The log messages of a request, which explain its response. */
#ifndef DUDA_DEV_REQUEST_MESSAGES_H
#define DUDA_DEV_REQUEST_MESSAGES_H

#include <monkey/plugin.h>

/* Implements on_log: keeps the message with the request. Returns true if the server should not log it. */
bool dev_request_messages_add(struct mk_request *request, enum mk_log_level level, mk_str message);
/* Returns the messages so far, one per line. */
mk_str dev_request_messages_get(struct mk_request *request);

#endif
