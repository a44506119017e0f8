/* SPDX-License-Identifier: Apache-2.0 */
/* A text, a number or nothing goes straight to the handler. The members of a list come one after the other,
 * and the handler may be gone before the last: they are kept here until the list is complete. */
#include "reply.h"

#include <duda/memory.h>
#include <errno.h>
#include <monkey/mem.h>
#include <stdint.h>

enum { BLOCK = 4096 - 64, ALIGNED = _Alignof(max_align_t) };

/* Since its version 1, hiredis counts the members of a list in another type. */
#if HIREDIS_MAJOR >= 1
typedef size_t redis_count;
#else
typedef int redis_count;
#endif

struct redis_block {
    struct redis_block *before;
    size_t used, cap;
    _Alignas(max_align_t) char room[];
};

/* ---- Its own memory ---- */

static void *take(struct redis_parser *p, size_t size)
{
    struct redis_block *b = p->blocks;
    size = (size + ALIGNED - 1) & ~(size_t)(ALIGNED - 1);
    if (!b || b->cap - b->used < size) {
        size_t cap = size > BLOCK ? size : BLOCK;
        b = mk_mem_alloc(sizeof *b + cap);
        if (!b)
            return NULL;
        *b = (struct redis_block){.before = p->blocks, .cap = cap};
        p->blocks = b;
    }
    void *room = b->room + b->used;
    b->used += size;
    return room;
}

/* One block stays for the next list. */
static void forget(struct redis_parser *p)
{
    while (p->blocks && (p->blocks->before || p->blocks->cap > BLOCK)) {
        struct redis_block *b = p->blocks;
        p->blocks = b->before;
        mk_mem_free(b);
    }
    if (p->blocks)
        p->blocks->used = 0;
}

/* ---- Called by hiredis ---- */

/* The place of a reply, or of a member of the list above it. A handler without memory for it fails alone: the
 * reply is read to its end. */
static struct duda_redis_reply *place(const redisReadTask *task, enum duda_redis_type type)
{
    struct redis_parser *p = task->privdata;
    struct duda_redis_reply *r = p->to;
    if (task->parent)
        r = task->parent->obj;
    else if (!p->d || type == DUDA_REDIS_LIST)
        r = take(p, sizeof *r);
    if (!r)
        return NULL;
    if (task->parent)
        r = (struct duda_redis_reply *)(uintptr_t)&r->items[task->idx]; /* made by on_list() */
    *r = (struct duda_redis_reply){.type = type};
    return r;
}

static mk_str copy(struct redis_parser *p, mk_str text, bool is_member)
{
    if (p->d && !is_member)
        return duda_copy(p->d, text);
    char *room = take(p, text.len + 1);
    if (!room)
        return MK_ABSENT;
    memcpy(room, text.p, text.len);
    room[text.len] = 0;
    return mk_str_of(room, text.len);
}

static void *on_text(const redisReadTask *task, char *text, size_t len)
{
    struct redis_parser *p = task->privdata;
    struct duda_redis_reply *r = place(task, task->type == REDIS_REPLY_ERROR    ? DUDA_REDIS_ERROR
                                             : task->type == REDIS_REPLY_STATUS ? DUDA_REDIS_STATUS
                                                                                : DUDA_REDIS_TEXT);
    if (!r)
        return NULL;
    r->text = copy(p, mk_str_of(text, len), task->parent);
    if (!r->text.p && r == p->to)
        p->is_out_of_memory = true;
    return r->text.p || r == p->to ? r : NULL;
}

/* A few bytes announce a list of any length, whose room is made before its members come. */
static void *on_list(const redisReadTask *task, redis_count n)
{
    struct redis_parser *p = task->privdata;
    struct duda_redis_reply *r = place(task, DUDA_REDIS_LIST), *items;
    size_t size;
    if ((size_t)n > p->list_max - p->members) {
        p->members = SIZE_MAX;
        return NULL;
    }
    p->members += (size_t)n;
    if (!r || __builtin_mul_overflow((size_t)n, sizeof *items, &size))
        return NULL;
    items = take(p, size);
    if (!items)
        return NULL;
    memset(items, 0, size);
    r->items = items;
    r->n = (size_t)n;
    return r;
}

static void *on_number(const redisReadTask *task, long long n)
{
    struct duda_redis_reply *r = place(task, DUDA_REDIS_NUMBER);
    if (r)
        r->number = n;
    return r;
}

static void *on_nil(const redisReadTask *task)
{
    return place(task, DUDA_REDIS_NIL);
}

static void on_free(void *object)
{
    (void)object;
}

static redisReplyObjectFunctions makers = {.createString = on_text,
                                           .createArray = on_list,
                                           .createInteger = on_number,
                                           .createNil = on_nil,
                                           .freeObject = on_free};

/* ---- For its connection ---- */

int redis_parser_init(struct redis_parser *p)
{
    p->reader = redisReaderCreateWithFunctions(&makers);
    if (p->reader)
        p->reader->privdata = p;
    return p->reader ? 0 : -ENOMEM;
}

void redis_parser_fini(struct redis_parser *p)
{
    if (p->reader)
        redisReaderFree(p->reader);
    p->reader = NULL;
    forget(p);
    mk_mem_free(p->blocks);
    p->blocks = NULL;
}

void redis_parser_reset(struct redis_parser *p)
{
    /* A new reader: the old one may be in the middle of a reply. */
    redisReader *old = p->reader;
    if (redis_parser_init(p))
        p->reader = old;
    else
        redisReaderFree(old);
    forget(p);
}

/* Copies a list into the memory of the handler. hiredis takes no more than seven levels. */
static bool keep(struct duda *d, struct duda_redis_reply *r)
{
    if (r->type != DUDA_REDIS_LIST) {
        if (r->text.p)
            r->text = duda_copy(d, r->text);
        return r->text.p || r->type == DUDA_REDIS_NIL || r->type == DUDA_REDIS_NUMBER;
    }
    struct duda_redis_reply *items = duda_alloc(d, r->n ? r->n * sizeof *items : 1);
    if (!items)
        return false;
    if (r->n)
        memcpy(items, r->items, r->n * sizeof *items);
    r->items = items;
    for (size_t i = 0; i < r->n; i++)
        if (!keep(d, &items[i]))
            return false;
    return true;
}

int redis_parser_next(struct redis_parser *p, struct duda_redis_reply **out)
{
    void *reply = NULL;
    if (!p->reader->reply) {
        forget(p);
        p->members = 0;
    }
    p->is_out_of_memory = false;
    if (redisReaderGetReply(p->reader, &reply) != REDIS_OK)
        return p->members > p->list_max ? -EMSGSIZE : p->reader->err == REDIS_ERR_OOM ? -ENOMEM : -EPROTO;
    if (!reply)
        return -EAGAIN;
    *out = reply;
    if (p->d && *out != p->to) {
        *p->to = **out;
        if (!keep(p->d, p->to)) {
            *p->to = (struct duda_redis_reply){.type = DUDA_REDIS_NIL};
            p->is_out_of_memory = true;
        }
        *out = p->to;
    }
    return 0;
}

int redis_reply_error(const struct duda_redis_reply *reply)
{
    static const struct {
        mk_str word;
        int error;
    } known[] = {
        {MK_STR("OOM "), -ENOSPC},         {MK_STR("MISCONF "), -ENOSPC},    {MK_STR("LOADING "), -EAGAIN},
        {MK_STR("BUSY "), -EAGAIN},        {MK_STR("MASTERDOWN "), -EAGAIN}, {MK_STR("TRYAGAIN "), -EAGAIN},
        {MK_STR("CLUSTERDOWN "), -EAGAIN}, {MK_STR("NOREPLICAS "), -EAGAIN},
    };
    for (size_t i = 0; i < MK_LEN(known); i++)
        if (mk_str_starts(reply->text, known[i].word))
            return known[i].error;
    return -EREMOTEIO;
}
