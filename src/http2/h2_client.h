/* SPDX-License-Identifier: Apache-2.0 */
/* A client in memory that makes one request at a time: mk_probe_ask() over HTTP/2. */
#ifndef MK_HTTP2_H2_CLIENT_H
#define MK_HTTP2_H2_CLIENT_H

#include "proto/http2.h"

extern const struct mk_http2_client_ops mk_h2_client_ops;

#endif
