/* SPDX-License-Identifier: Apache-2.0 */
/* Connection manager of a worker: lifecycle and limits. */
#ifndef MK_CONNECTION_CONN_MANAGER_H
#define MK_CONNECTION_CONN_MANAGER_H

#include "connection/conn_manager_type.h"

/* Initializes the manager. `server_name`: value of the Server header. All pointers must outlive the
 * manager. */
mk_err mk_conn_manager_init(struct mk_conn_manager *s, struct mk_loop *loop, struct mk_web_ctx *web,
                            const struct mk_conn_manager_limits *limits, struct mk_counters *counters,
                            mk_str server_name) MK_MUST_USE;
/* Close all connections first (mk_conn_close_all). */
void mk_conn_manager_fini(struct mk_conn_manager *s);

/* Enables HTTP/2; NULL: disabled. Call it before connections are accepted. */
void mk_conn_manager_set_http2(struct mk_conn_manager *s, const struct mk_http2_module *module);

/* Limits the open files of the file cache to three quarters of the descriptors that no connection uses. */
void mk_conn_manager_limit_open_files(struct mk_conn_manager *s);

#endif
