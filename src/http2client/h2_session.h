/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions with a backend: opening, choosing one for a request, draining, closing. */
#ifndef MK_HTTP2CLIENT_H2_SESSION_H
#define MK_HTTP2CLIENT_H2_SESSION_H

#include "upstream/http2.h"

extern const struct mk_upstream_http2_module mk_h2_session_module;

#endif
