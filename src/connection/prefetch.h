/* SPDX-License-Identifier: Apache-2.0 */
/* Handles files that are not in the page cache: sendfile would block on the disk and delay all other
 * connections. Detects such files in advance and lets a helper thread read them; then the connection
 * continues. */
#ifndef MK_CONNECTION_PREFETCH_H
#define MK_CONNECTION_PREFETCH_H

#include "connection/conn_manager_type.h"

struct mk_prefetch;

/* Bytes that are checked and read at a time. */
enum { MK_PREFETCH_WINDOW = 1024 * 1024 };

/* Are these bytes cached, according to a cheap check? For a file of one window, the result is trusted for a
 * second. */
bool mk_prefetch_is_cached(struct mk_conn_manager *s, struct mk_open_file *f, uint64_t offset, uint64_t len);

/* Reads the window in the background, then calls on_read(data) in the loop. NULL: that is not possible; send
 * the file anyway. */
struct mk_prefetch *mk_prefetch_start(struct mk_conn_manager *s, struct mk_open_file *f, uint64_t offset,
                                      uint64_t len, void (*on_read)(void *data), void *data);
/* Call it when the body has no data yet: sets *in_the_way if the body waits for a disk, and starts the read.
 * Returns the same values as mk_prefetch_start(); the same file does not block a second time. */
struct mk_prefetch *mk_prefetch_start_for_body(struct mk_conn_manager *s, struct mk_response_body *content,
                                               bool *in_the_way, void (*on_read)(void *data), void *data);
/* Call it when the request has ended: on_read is then never called. */
void mk_prefetch_detach(struct mk_prefetch *r);

#endif
