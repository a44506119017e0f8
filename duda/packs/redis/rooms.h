/* SPDX-License-Identifier: Apache-2.0 */
/* What is said in rooms, from machine to machine. */
#ifndef DUDA_REDIS_ROOMS_H
#define DUDA_REDIS_ROOMS_H

#include "hub.h"
#include "queue.h"

struct redis_rooms;

/* NULL: no memory, or no Duda. */
struct redis_rooms *redis_rooms_new(struct mk_worker *w, struct redis_queue *q, struct redis_hub *h);
/* Before the hub goes. NULL is fine. */
void redis_rooms_free(struct redis_rooms *r);

#endif
