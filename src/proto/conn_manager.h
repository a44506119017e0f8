/* SPDX-License-Identifier: Apache-2.0 */
/* The service of a worker: its life, and what each request and connection leaves there. */
#ifndef MK_PROTO_CONN_MANAGER_H
#define MK_PROTO_CONN_MANAGER_H

#include "proto/conn_manager_type.h"

/* `server_name` as in the Server field. All pointers must outlive the service. */
mk_err mk_conn_manager_init(struct mk_conn_manager *s, struct mk_loop *loop, struct mk_web_ctx *web,
                            const struct mk_conn_manager_limits *limits, struct mk_counters *counters,
                            mk_str server_name) MK_MUST_USE;
/* All connections must be closed (mk_conn_close_all). */
void mk_conn_manager_fini(struct mk_conn_manager *s);

/* Makes HTTP/2 available to its connections; NULL: it is not. Before connections are accepted. */
void mk_conn_manager_set_http2(struct mk_conn_manager *s, const struct mk_http2_module *module);

/* Makes the one record of a request: counts it and passes it to hooks and logs. */
void mk_conn_manager_record_request(struct mk_conn_manager *s, struct mk_exchange *x, enum mk_outcome ending,
                                    uint64_t content_sent);
/* Lets open files use three quarters of the descriptors that connections leave. */
void mk_conn_manager_limit_open_files(struct mk_conn_manager *s);
/* Notes the request for the report on a crashed worker: method and target, with a space between them. */
void mk_conn_manager_note_request_line(struct mk_conn_manager *s, mk_str line);
void mk_conn_manager_note_request(struct mk_conn_manager *s, mk_str method, mk_str target);

#endif
