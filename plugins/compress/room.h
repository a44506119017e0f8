/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is there before somebody asks for it, for a library that ends the process when it gets none:
 * one block, of which only what is touched is used, and a list of what is free in it. */
#ifndef COMPRESS_ROOM_H
#define COMPRESS_ROOM_H

#include <stddef.h>

struct room;

/* For `size` bytes in all. NULL when memory is out. */
struct room *compress_room_new(size_t size);
void compress_room_free(struct room *r);

/* NULL only when there is neither room nor other memory. */
void *compress_room_take(struct room *r, size_t size);
void compress_room_give(struct room *r, void *p);

#endif
