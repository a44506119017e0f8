/* SPDX-License-Identifier: Apache-2.0 */
/* Files whose pages are not in memory: sendfile would wait for the disk, and every other connection with it.
 * They are found out beforehand, and read by a helper thread; then the connection goes on. */
#ifndef MK_PROTO_COLDREAD_H
#define MK_PROTO_COLDREAD_H

#include "proto/service.h"

struct mk_coldread;

/* What is looked at, and read, at once. */
enum { MK_COLDREAD_WINDOW = 1024 * 1024 };

/* Are these bytes in memory, as far as can be told cheaply? A file of one window is believed for a second. */
bool mk_coldread_is_warm(struct mk_service *s, struct mk_open_file *f, uint64_t offset, uint64_t len);

/* Reads the window in the background, then calls on_read(data) in the loop. NULL: it cannot be done, send at
 * once. */
struct mk_coldread *mk_coldread_start(struct mk_service *s, struct mk_open_file *f, uint64_t offset,
                                      uint64_t len, void (*on_read)(void *data), void *data);
/* Whoever makes the content has nothing yet: is it a disk that is in the way? *in_the_way says so. The answer
 * as above; what was in the way is not again. */
struct mk_coldread *mk_coldread_missed(struct mk_service *s, struct mk_content *content, bool *in_the_way,
                                       void (*on_read)(void *data), void *data);
/* Whoever waited is gone: nothing will be called. */
void mk_coldread_forget(struct mk_coldread *r);

#endif
