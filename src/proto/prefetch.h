/* SPDX-License-Identifier: Apache-2.0 */
/* Handles files whose pages are not in memory: sendfile would wait for the disk, and delay every other
 * connection. This detects such files beforehand and lets a helper thread read them; then the connection goes
 * on. */
#ifndef MK_PROTO_PREFETCH_H
#define MK_PROTO_PREFETCH_H

#include "proto/conn_manager_type.h"

struct mk_prefetch;

/* Bytes that are checked and read at a time. */
enum { MK_PREFETCH_WINDOW = 1024 * 1024 };

/* Are these bytes in memory, as far as a cheap check can tell? For a file of one window, the result is
 * trusted for a second. */
bool mk_prefetch_is_cached(struct mk_conn_manager *s, struct mk_open_file *f, uint64_t offset, uint64_t len);

/* Reads the window in the background, then calls on_read(data) in the loop. NULL: that is impossible, so send
 * at once. */
struct mk_prefetch *mk_prefetch_start(struct mk_conn_manager *s, struct mk_open_file *f, uint64_t offset,
                                      uint64_t len, void (*on_read)(void *data), void *data);
/* The content has no data yet: sets *in_the_way if it waits for a disk, and starts the read. Returns the same
 * as mk_prefetch_start; the same file does not block a second time. */
struct mk_prefetch *mk_prefetch_start_for_body(struct mk_conn_manager *s, struct mk_response_body *content,
                                               bool *in_the_way, void (*on_read)(void *data), void *data);
/* The request has ended: on_read is not called any more. */
void mk_prefetch_detach(struct mk_prefetch *r);

#endif
