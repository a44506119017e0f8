/* SPDX-License-Identifier: Apache-2.0 */
#include "reply.h"

#include <duda/memory.h>

static bool copy_text(struct duda *d, const redisReply *from, struct duda_redis_reply *to)
{
    to->text = duda_copy(d, mk_str_of(from->str ? from->str : "", from->len));
    return to->text.p != NULL;
}

/* hiredis takes no more than seven levels. */
static bool copy_list(struct duda *d, const redisReply *from, struct duda_redis_reply *to)
{
    struct duda_redis_reply *items;
    size_t size;
    if (__builtin_mul_overflow(from->elements, sizeof *items, &size))
        return false;
    items = duda_alloc(d, size ? size : 1);
    if (!items)
        return false;
    memset(items, 0, size);
    to->items = items;
    for (to->n = 0; to->n < from->elements; to->n++)
        if (!redis_reply_copy(d, from->element[to->n], &items[to->n]))
            return false;
    return true;
}

bool redis_reply_copy(struct duda *d, const redisReply *from, struct duda_redis_reply *to)
{
    *to = (struct duda_redis_reply){.type = DUDA_REDIS_NIL};
    switch (from->type) {
    case REDIS_REPLY_STRING:
        to->type = DUDA_REDIS_TEXT;
        return copy_text(d, from, to);
    case REDIS_REPLY_STATUS:
        to->type = DUDA_REDIS_STATUS;
        return copy_text(d, from, to);
    case REDIS_REPLY_ERROR:
        to->type = DUDA_REDIS_ERROR;
        return copy_text(d, from, to);
    case REDIS_REPLY_INTEGER:
        to->type = DUDA_REDIS_NUMBER;
        to->number = from->integer;
        return true;
    case REDIS_REPLY_ARRAY:
        to->type = DUDA_REDIS_LIST;
        return copy_list(d, from, to);
    default:
        return true;
    }
}

bool redis_reply_may_ask(mk_str command)
{
    static const char *const refused[] = {
        "AUTH",  "SELECT", "HELLO",  "RESET",   "QUIT",       "CLIENT",     "MONITOR",      "SUBSCRIBE",
        "MULTI", "EXEC",   "WATCH",  "DISCARD", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE",  "PUNSUBSCRIBE",
        "BLPOP", "BRPOP",  "BLMOVE", "BLMPOP",  "BRPOPLPUSH", "BZPOPMIN",   "BZPOPMAX",     "BZMPOP",
        "WAIT",  "SYNC",   "PSYNC",  "WAITAOF", "REPLCONF",   "SHUTDOWN",   "SUNSUBSCRIBE", "UNWATCH"};
    for (size_t i = 0; i < MK_LEN(refused); i++)
        if (mk_str_eq_nocase(command, mk_str_from_c(refused[i])))
            return false;
    return true;
}
