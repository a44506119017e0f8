/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of hiredis as those of a handler. */
#ifndef DUDA_REDIS_REPLY_H
#define DUDA_REDIS_REPLY_H

#include <duda/redis.h>
#include <hiredis/hiredis.h>

/* Copies it into the memory of the handler. False: that is out. */
bool redis_reply_copy(struct duda *d, const redisReply *from, struct duda_redis_reply *to);
/* May a handler send this command over the connection of all? */
bool redis_reply_may_ask(mk_str command);

#endif
