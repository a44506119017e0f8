/* SPDX-License-Identifier: Apache-2.0 */
/* Commands as straight-line calls. */
#include "redis.h"

#include <duda/asked.h>
#include <duda/memory.h>
#include <duda/redis.h>
#include <duda/wait.h>
#include <errno.h>

#include "reply.h"

/* On the stack of the handler, as long as it waits. */
struct wait {
    struct duda *d;
    struct duda_redis_reply *replies;
    size_t got;
    bool is_over;
    int error;
};

static void on_reply(void *ctx, const redisReply *reply, int error)
{
    struct wait *wait = ctx;
    if (reply) {
        if (!redis_reply_copy(wait->d, reply, &wait->replies[wait->got++]))
            wait->error = -ENOMEM;
        return;
    }
    wait->error = error ? error : wait->error;
    wait->is_over = true;
    duda_wake(wait->d);
}

/* Says in the reply what happened where. */
static int explain(struct duda *d, const struct duda_redis *r, struct duda_redis_reply *reply, int e)
{
    const struct redis_settings *s = r->queue.conn.settings;
    reply->type = DUDA_REDIS_ERROR;
    reply->text = r->queue.conn.why[0] && e != -EINVAL && e != -EBUSY && e != -EOPNOTSUPP && e != -ECANCELED
                      ? duda_copy(d, mk_str_from_c(r->queue.conn.why))
                      : duda_print(d, "[REDIS] %.*s, %.*s: %s", MK_STR_ARG(s->name), MK_STR_ARG(s->server),
                                   strerror(-e));
    return e;
}

/* Sends the job, which ends with it, and waits for its replies. */
static int run(struct duda *d, struct duda_redis *r, struct redis_job *job, struct duda_redis_reply *replies)
{
    struct wait wait = {.d = d, .replies = replies};
    int e = !job || job->bytes.failed ? -ENOMEM : duda_ended(d);
    if (!e) {
        job->on_reply = on_reply;
        job->ctx = &wait;
        e = redis_queue_add(&r->queue, job);
    }
    if (e) {
        redis_job_free(job);
        return explain(d, r, replies, e);
    }
    while (!wait.is_over && !(e = duda_suspend(d)))
        continue;
    if (!wait.is_over)
        job->on_reply = NULL;
    else
        e = wait.error;
    return e ? explain(d, r, replies, e) : 0;
}

static int check(const mk_str *parts, size_t n)
{
    size_t bytes = 0;
    if (!n || n > DUDA_REDIS_PARTS_MAX || !parts[0].len)
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        if (__builtin_add_overflow(bytes, parts[i].len, &bytes) || bytes > DUDA_REDIS_BYTES_MAX)
            return -EMSGSIZE;
    return redis_reply_may_ask(parts[0]) ? 0 : -EOPNOTSUPP;
}

int duda_redis_do(struct duda *d, struct duda_redis *r, struct duda_redis_reply *reply, const mk_str *parts,
                  size_t n)
{
    *reply = (struct duda_redis_reply){.type = DUDA_REDIS_NIL};
    int e = check(parts, n);
    if (e)
        return explain(d, r, reply, e);
    struct redis_job *job = redis_job_new(1);
    if (job)
        redis_conn_write(&job->bytes, parts, n);
    e = run(d, r, job, reply);
    return !e && reply->type == DUDA_REDIS_ERROR ? -EREMOTEIO : e;
}

/* ---- Several ---- */

static int check_all(const struct duda_redis_command *commands, size_t n)
{
    int e = n && n <= DUDA_REDIS_MANY_MAX ? 0 : -EINVAL;
    for (size_t i = 0; i < n && !e; i++)
        e = check(commands[i].parts, commands[i].n);
    return e;
}

static struct redis_job *write_all(const struct duda_redis_command *commands, size_t n, bool whole)
{
    struct redis_job *job = redis_job_new(n + (whole ? 2 : 0));
    if (job && whole)
        redis_conn_write(&job->bytes, (const mk_str[]){MK_STR("MULTI")}, 1);
    for (size_t i = 0; job && i < n; i++)
        redis_conn_write(&job->bytes, commands[i].parts, commands[i].n);
    if (job && whole)
        redis_conn_write(&job->bytes, (const mk_str[]){MK_STR("EXEC")}, 1);
    return job;
}

int duda_redis_many(struct duda *d, struct duda_redis *r, const struct duda_redis_command *commands, size_t n,
                    struct duda_redis_reply *replies)
{
    int e = check_all(commands, n);
    if (n)
        memset(replies, 0, n * sizeof *replies);
    if (e)
        return n ? explain(d, r, replies, e) : e;
    return run(d, r, write_all(commands, n, false), replies);
}

/* The reply of EXEC is the list of those of the commands. */
static int take_results(const struct duda_redis_reply *all, size_t n, struct duda_redis_reply *replies)
{
    const struct duda_redis_reply *exec = &all[n + 1];
    if (exec->type == DUDA_REDIS_LIST && exec->n == n) {
        memcpy(replies, exec->items, n * sizeof *replies);
        return 0;
    }
    replies[0] = *exec;
    for (size_t i = 0; i <= n; i++)
        if (all[i].type == DUDA_REDIS_ERROR) {
            replies[0] = all[i];
            break;
        }
    return -EREMOTEIO;
}

int duda_redis_transaction(struct duda *d, struct duda_redis *r, const struct duda_redis_command *commands,
                           size_t n, struct duda_redis_reply *replies)
{
    int e = check_all(commands, n);
    if (n)
        memset(replies, 0, n * sizeof *replies);
    if (e)
        return n ? explain(d, r, replies, e) : e;
    struct duda_redis_reply *all = duda_alloc(d, (n + 2) * sizeof *all);
    if (!all)
        return explain(d, r, replies, -ENOMEM);
    memset(all, 0, (n + 2) * sizeof *all);
    e = run(d, r, write_all(commands, n, true), all);
    if (!e)
        return take_results(all, n, replies);
    replies[0] = all[0];
    return e;
}

/* ---- Scripts ---- */

static int load(struct duda *d, struct duda_redis *r, struct duda_redis_reply *reply,
                struct duda_redis_script *script)
{
    int e = duda_redis(d, r, reply, MK_STR("SCRIPT"), MK_STR("LOAD"), mk_str_from_c(script->source));
    if (e)
        return e;
    if (reply->text.len != sizeof script->sha - 1)
        return explain(d, r, reply, -EPROTO);
    memcpy(script->sha, reply->text.p, sizeof script->sha);
    return 0;
}

int duda_redis_run(struct duda *d, struct duda_redis *r, struct duda_redis_reply *reply,
                   struct duda_redis_script *script, size_t n_keys, const mk_str *arguments, size_t n)
{
    *reply = (struct duda_redis_reply){.type = DUDA_REDIS_NIL};
    mk_str *parts = n <= DUDA_REDIS_PARTS_MAX ? duda_alloc(d, (n + 3) * sizeof *parts) : NULL;
    if (!parts || n_keys > n)
        return explain(d, r, reply, parts ? -EINVAL : -ENOMEM);
    parts[0] = MK_STR("EVALSHA");
    parts[2] = duda_print(d, "%zu", n_keys);
    if (n)
        memcpy(parts + 3, arguments, n * sizeof *parts);
    int e = script->sha[0] ? 0 : load(d, r, reply, script);
    for (int tries = 0; !e && tries < 2; tries++) {
        parts[1] = mk_str_from_c(script->sha);
        e = duda_redis_do(d, r, reply, parts, n + 3);
        /* It was restarted, or is another one. */
        if (e != -EREMOTEIO || !mk_str_starts(reply->text, MK_STR("NOSCRIPT")) || tries)
            return e;
        e = load(d, r, reply, script);
    }
    return e;
}
