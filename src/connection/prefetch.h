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

/* Are these bytes in the page cache, according to a cheap check? For a file that fits into one window, a
 * positive result is reused for a second. */
bool mk_prefetch_is_cached(struct mk_conn_manager *s, struct mk_open_file *f, uint64_t offset, uint64_t len);

/* Reads the window in the background, then calls on_read(data) in the loop. NULL: no thread can read it; send
 * the file anyway. */
struct mk_prefetch *mk_prefetch_start(struct mk_conn_manager *s, struct mk_open_file *f, uint64_t offset,
                                      uint64_t len, void (*on_read)(void *data), void *data);
/* Call it when the body has no data yet. If the body waits for the disk, sets *awaits_disk to true, starts to
 * read the window, and returns the result of mk_prefetch_start(); even if that is NULL, the window counts as
 * cached from then on. Otherwise sets *awaits_disk to false and returns NULL. */
struct mk_prefetch *mk_prefetch_start_for_body(struct mk_conn_manager *s, struct mk_response_body *content,
                                               bool *awaits_disk, void (*on_read)(void *data), void *data);
/* Call it when the request has ended: on_read will no longer be called. */
void mk_prefetch_detach(struct mk_prefetch *r);

#endif
