/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs with one Lua script per step; all keys of a queue are in one slot, and times are those of the server.
 * Keys of the queue `shop:mail` begin with `!duda:jobs:{shop:mail}:`
 *
 *     w   sorted set: IDs of waiting jobs, by due time
 *     r   sorted set: IDs of running jobs, by end of the lease
 *     t   hash: owners of running jobs      n   hash: number of tries
 *     j   hash: records                     x   hash: records of failed jobs
 *     u   hash: unique keys, and the IDs of the jobs that own them
 *     -   never exists
 *
 * While a cluster migrates the slot, some keys are on one node and others on another, and a script would see
 * half of the queue. So each script names all keys, and a key that is on neither node: the nodes reply
 * TRYAGAIN until all keys have migrated. */
#include "jobs_backend.h"

#include <duda/memory.h>
#include <duda/redis.h>
#include <errno.h>
#include <stdlib.h>

#include "key_slot.h"
#include "redis.h"
#include "reply_parser.h"

static const char tables[] = {'w', 'r', 't', 'n', 'j', 'x', 'u', '-'};

enum { KEYS = sizeof tables, ARGUMENTS_MAX = 7 };

#define BEGIN                                                                                                \
    "local p=string.sub(KEYS[1],1,-2) local t=redis.call('TIME') local now=t[1]*1000+math.floor(t[2]/1000) " \
    "local id=ARGV[1] "
/* The due time: an absolute time, or a delay. */
#define DUE(at, delay) "(" at "~='0' and " at " or now+" delay ")"
#define IF_OURS        "if redis.call('HGET',p..'t',id)~=ARGV[2] then return 0 end "

/* ARGV: ID, record, unique, time, delay. */
static struct duda_redis_script push_script = {
    .source = BEGIN "if redis.call('HEXISTS',p..'j',id)==1 then return 0 end "
                    "if ARGV[3]~='' and redis.call('HSETNX',p..'u',ARGV[3],id)==0 then return 0 end "
                    "redis.call('HSET',p..'j',id,ARGV[2]) redis.call('ZADD',p..'w'," DUE(
                        "ARGV[4]", "ARGV[5]") ",id) return 1"};

/* ARGV: unused, token, lease. Jobs whose lease has expired are requeued. */
static struct duda_redis_script take_script = {
    .source = BEGIN
    "for _,lost in ipairs(redis.call('ZRANGEBYSCORE',p..'r','-inf',now)) do "
    "redis.call('ZREM',p..'r',lost) redis.call('HDEL',p..'t',lost) redis.call('ZADD',p..'w',now,lost) "
    "end "
    "id=redis.call('ZRANGEBYSCORE',p..'w','-inf',now,'LIMIT',0,1)[1] "
    "if not id then local next=-1 for _,k in ipairs({'w','r'}) do "
    "local at=redis.call('ZRANGE',p..k,0,0,'WITHSCORES')[2] "
    "if at and (next<0 or at-now<next) then next=at-now end end return {next} end "
    "redis.call('ZREM',p..'w',id) redis.call('ZADD',p..'r',now+ARGV[3],id) "
    "redis.call('HSET',p..'t',id,ARGV[2]) "
    "return {redis.call('HINCRBY',p..'n',id,1),id,redis.call('HGET',p..'j',id) or '',now}"};

/* ARGV: ID, token, lease. */
static struct duda_redis_script renew_script = {.source = BEGIN IF_OURS
                                                "redis.call('ZADD',p..'r',now+ARGV[3],id) return 1"};

/* ARGV: ID, token, how, record, unique, time, delay. */
static struct duda_redis_script finish_script = {
    .source = BEGIN IF_OURS
    "redis.call('ZREM',p..'r',id) redis.call('HDEL',p..'t',id) "
    "if ARGV[3]~='later' then redis.call('HDEL',p..'n',id) end "
    "if ARGV[3]=='later' or ARGV[3]=='again' then redis.call('HSET',p..'j',id,ARGV[4]) "
    "redis.call('ZADD',p..'w'," DUE(
        "ARGV[6]", "ARGV[7]") ",id) return 1 end "
                              "redis.call('HDEL',p..'j',id) "
                              "if ARGV[5]~='' and redis.call('HGET',p..'u',ARGV[5])==id then "
                              "redis.call('HDEL',p..'u',ARGV[5]) end "
                              "if ARGV[3]=='dead' then redis.call('HSET',p..'x',id,ARGV[4]) end return 1"};

static struct duda_redis_script now_script = {.source = BEGIN "return now"};

/* ARGV: ID, unique. */
static struct duda_redis_script revive_script = {
    .source = BEGIN "local record=redis.call('HGET',p..'x',id) if not record then return 0 end "
                    "if ARGV[2]~='' and redis.call('HSETNX',p..'u',ARGV[2],id)==0 then return -1 end "
                    "redis.call('HDEL',p..'x',id) redis.call('HSET',p..'j',id,record) "
                    "redis.call('ZADD',p..'w',now,id) return 1"};

/* ARGV: ID. */
static struct duda_redis_script drop_script = {.source = BEGIN "return redis.call('HDEL',p..'x',id)"};

static mk_str queue_key(struct duda_ctx *d, mk_str queue, char table)
{
    return duda_sprintf(d, REDIS_RESERVED_PREFIX "jobs:{%.*s}:%c", MK_STR_ARG(queue), table);
}

/* Runs a script with the keys of the queue and n arguments, like redis_eval_replicated(). */
static int run_jobs_script_replicated(struct duda_ctx *d, struct duda_store *s, mk_str queue,
                                      struct duda_redis_script *script, struct duda_redis_reply *reply,
                                      const mk_str *arguments, size_t n, bool *is_kept)
{
    mk_str all[KEYS + ARGUMENTS_MAX];
    for (size_t i = 0; i < KEYS; i++) {
        all[i] = queue_key(d, queue, tables[i]);
        if (!all[i].p)
            return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++)
        all[KEYS + i] = arguments[i].p ? arguments[i] : MK_STR("");
    return redis_eval_replicated(d, s->ctx, reply, script, KEYS, all, KEYS + n, is_kept);
}

/* Runs a script without waiting for replicas: a write that a failover loses is repeated. */
static int run_jobs_script(struct duda_ctx *d, struct duda_store *s, mk_str queue,
                           struct duda_redis_script *script, struct duda_redis_reply *reply,
                           const mk_str *arguments, size_t n)
{
    return run_jobs_script_replicated(d, s, queue, script, reply, arguments, n, NULL);
}

static mk_str format_number(struct duda_ctx *d, uint64_t n)
{
    return duda_sprintf(d, "%llu", (unsigned long long)n);
}

/* Maps the reply of a script to a result: the number 0 means that the script has changed nothing. */
static int script_result(int e, const struct duda_redis_reply *reply, int otherwise)
{
    return e ? e : reply->type != DUDA_REDIS_NUMBER ? -EPROTO : reply->number ? 0 : otherwise;
}

static int redis_jobs_enqueue(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id,
                              mk_str record, mk_str unique, struct duda_jobs_due due)
{
    struct duda_redis_reply reply;
    const mk_str arguments[] = {id, record, unique, format_number(d, due.at_ms),
                                format_number(d, due.delay_ms)};
    bool is_kept = true;
    int e = run_jobs_script_replicated(d, s, queue, &push_script, &reply, arguments, 5, &is_kept);
    e = script_result(e, &reply, -EEXIST);
    return e ? e : is_kept ? 0 : -ENOLINK;
}

static int redis_jobs_dequeue(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str token,
                              uint64_t lease_ms, struct duda_jobs_dequeued *out)
{
    struct duda_redis_reply reply;
    const mk_str arguments[] = {MK_STR(""), token, format_number(d, lease_ms)};
    int e = run_jobs_script(d, s, queue, &take_script, &reply, arguments, 3);
    if (e)
        return e;
    if (reply.type != DUDA_REDIS_LIST || !reply.n || reply.items[0].type != DUDA_REDIS_NUMBER)
        return -EPROTO;
    out->next_ms = reply.items[0].number < 0 ? UINT64_MAX : (uint64_t)reply.items[0].number;
    if (reply.n < 4)
        return -ENOENT;
    out->attempts = (unsigned)reply.items[0].number;
    out->id = reply.items[1].text;
    out->record = reply.items[2].text;
    out->now_ms = (uint64_t)reply.items[3].number;
    return 0;
}

static int redis_jobs_renew(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id, mk_str token,
                            uint64_t lease_ms)
{
    struct duda_redis_reply reply;
    const mk_str arguments[] = {id, token, format_number(d, lease_ms)};
    return script_result(run_jobs_script(d, s, queue, &renew_script, &reply, arguments, 3), &reply, -ESTALE);
}

static int redis_jobs_complete(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id,
                               mk_str token, mk_str record, mk_str unique, enum duda_jobs_outcome outcome,
                               struct duda_jobs_due due)
{
    static const char *const names[] = {[DUDA_JOBS_DONE] = "done",
                                        [DUDA_JOBS_RETRY] = "later",
                                        [DUDA_JOBS_REQUEUE] = "again",
                                        [DUDA_JOBS_FAILED] = "dead"};
    struct duda_redis_reply reply;
    const mk_str arguments[] = {id,
                                token,
                                mk_str_from_c(names[outcome]),
                                record,
                                unique,
                                format_number(d, due.at_ms),
                                format_number(d, due.delay_ms)};
    return script_result(run_jobs_script(d, s, queue, &finish_script, &reply, arguments, 7), &reply, -ESTALE);
}

/* Uses the clock of the node that owns the queue. */
static int redis_jobs_now(struct duda_ctx *d, struct duda_store *s, mk_str queue, uint64_t *ms)
{
    struct duda_redis_reply reply;
    int e = run_jobs_script(d, s, queue, &now_script, &reply, (const mk_str[]){MK_STR("")}, 1);
    *ms = (uint64_t)reply.number;
    return e ? e : reply.type == DUDA_REDIS_NUMBER ? 0 : -EPROTO;
}

/* ---- Inspection ---- */

static int redis_jobs_count(struct duda_ctx *d, struct duda_store *s, mk_str queue,
                            struct duda_job_counts *out)
{
    const mk_str waiting[] = {MK_STR("ZCARD"), queue_key(d, queue, 'w')},
                 running[] = {MK_STR("ZCARD"), queue_key(d, queue, 'r')},
                 dead[] = {MK_STR("HLEN"), queue_key(d, queue, 'x')};
    const struct duda_redis_command all[] = {{waiting, 2}, {running, 2}, {dead, 2}};
    struct duda_redis_reply replies[3];
    int e = redis_pipeline_internal(d, s->ctx, all, 3, replies);
    for (size_t i = 0; i < MK_LEN(all) && !e; i++)
        e = replies[i].type == DUDA_REDIS_NUMBER ? 0 : redis_reply_errno(&replies[i]);
    if (e)
        return e;
    out->waiting = (uint64_t)replies[0].number;
    out->running = (uint64_t)replies[1].number;
    out->failed = (uint64_t)replies[2].number;
    return 0;
}

struct pair {
    mk_str id, record;
};

static int compare_ids(const void *a, const void *b)
{
    return mk_str_cmp(((const struct pair *)a)->id, ((const struct pair *)b)->id);
}

static int redis_jobs_list(struct duda_ctx *d, struct duda_store *s, mk_str queue,
                           bool (*each)(void *ctx, mk_str id, mk_str record), void *ctx)
{
    struct duda_redis_reply reply;
    const mk_str parts[] = {MK_STR("HGETALL"), queue_key(d, queue, 'x')};
    int e = redis_do_internal(d, s->ctx, &reply, parts, 2);
    size_t n = reply.type == DUDA_REDIS_LIST ? reply.n / 2 : 0;
    struct pair *pairs = e ? NULL : duda_alloc(d, (n + 1) * sizeof *pairs);
    if (!pairs)
        return e ? e : -ENOMEM;
    for (size_t i = 0; i < n; i++)
        pairs[i] = (struct pair){reply.items[2 * i].text, reply.items[2 * i + 1].text};
    qsort(pairs, n, sizeof *pairs, compare_ids);
    for (size_t i = 0; i < n && each(ctx, pairs[i].id, pairs[i].record); i++)
        continue;
    return 0;
}

static int redis_jobs_get_failed(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id,
                                 mk_str *record)
{
    struct duda_redis_reply reply;
    const mk_str parts[] = {MK_STR("HGET"), queue_key(d, queue, 'x'), id};
    int e = redis_do_internal(d, s->ctx, &reply, parts, 3);
    *record = reply.text;
    return e ? e : reply.type == DUDA_REDIS_NIL ? -ENOENT : reply.type == DUDA_REDIS_TEXT ? 0 : -EPROTO;
}

static int redis_jobs_retry(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id, mk_str unique)
{
    struct duda_redis_reply reply;
    const mk_str arguments[] = {id, unique};
    int e =
        script_result(run_jobs_script(d, s, queue, &revive_script, &reply, arguments, 2), &reply, -ENOENT);
    return e ? e : reply.number < 0 ? -EEXIST : 0;
}

static int redis_jobs_remove(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id)
{
    struct duda_redis_reply reply;
    return script_result(run_jobs_script(d, s, queue, &drop_script, &reply, &id, 1), &reply, -ENOENT);
}

const struct duda_jobs_ops redis_jobs_backend = {.enqueue = redis_jobs_enqueue,
                                                 .dequeue = redis_jobs_dequeue,
                                                 .renew = redis_jobs_renew,
                                                 .complete = redis_jobs_complete,
                                                 .now = redis_jobs_now,
                                                 .count = redis_jobs_count,
                                                 .list = redis_jobs_list,
                                                 .get_failed = redis_jobs_get_failed,
                                                 .retry = redis_jobs_retry,
                                                 .remove = redis_jobs_remove};
