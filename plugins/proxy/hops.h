/* SPDX-License-Identifier: Apache-2.0 */
/* Max-Forwards: how many proxies an OPTIONS or TRACE may still pass (RFC 9110, section 7.6.2). */
#ifndef PROXY_HOPS_H
#define PROXY_HOPS_H

#include "call_type.h"

/* Sets what is left for the backend. True: the request ends here, and *verdict is the answer to it. */
bool proxy_hops_end(struct proxy_call *c, enum mk_verdict *verdict);

#endif
