/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a request through the proxy. */
#ifndef PROXY_CALL_H
#define PROXY_CALL_H

#include "call_type.h"

enum mk_verdict proxy_call_handle(struct mk_request *request, struct mk_response *response, void *data);

#endif
