/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libmonkey that the extension calls. The extension does not link with the library:
 * the package has loaded the library with ctypes (see api.py), so both use the same copy of it. */
#ifndef LIBRARY_H
#define LIBRARY_H

#include "python.h"

#include <monkey/server.h>
#include <monkey/websocket.h>

/* clang-format off */
#define LIBRARY_FUNCTIONS(X)                                                                                 \
    X(mk_server_add_route) X(mk_server_step)                                                                 \
    X(mk_request_method_name) X(mk_request_target) X(mk_request_path) X(mk_request_query)                    \
    X(mk_request_scheme) X(mk_request_client_text) X(mk_request_client_addr) X(mk_request_local_addr)        \
    X(mk_request_has_encoded_slash) X(mk_request_version) X(mk_request_tunnel) X(mk_request_length)          \
    X(mk_request_set_handler_timeout) X(mk_request_header_at) X(mk_request_read) X(mk_request_resume)        \
    X(mk_request_cancel_on_disconnect) X(mk_request_add_cleanup) X(mk_request_set_data) X(mk_request_data)   \
    X(mk_request_accepts_trailers)                                                                           \
    X(mk_response_set_status) X(mk_response_add_header) X(mk_response_add_trailer) X(mk_response_send_1xx)   \
    X(mk_response_set_body) X(mk_response_set_body_owned) X(mk_response_set_body_source)                     \
    X(mk_response_set_body_file)                                                                             \
    X(mk_websocket_open) X(mk_websocket_send) X(mk_websocket_close) X(mk_websocket_pause)                    \
    X(mk_websocket_resume)
/* clang-format on */

#define DECLARE(name) __typeof__(name) *name;
extern struct library {
    LIBRARY_FUNCTIONS(DECLARE)
} lib;
#undef DECLARE

/* Looks up the functions in `handle`, a result of dlopen(). Returns NULL, or the name of the first missing
 * function. */
const char *library_bind(void *handle);

#endif
