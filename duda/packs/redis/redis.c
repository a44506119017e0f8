/* SPDX-License-Identifier: Apache-2.0 */
/* Commands as straight-line calls. */
#include "redis.h"

#include <duda/asked.h>
#include <duda/memory.h>
#include <duda/redis.h>
#include <duda/wait.h>
#include <errno.h>

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

/* Commands that go together. */
struct request {
    const struct duda_redis_command *commands;
    size_t n;
    bool is_whole; /* a transaction */
};

static void write_request(struct mk_buf *out, const struct request *r)
{
    if (r->is_whole)
        redis_conn_write(out, (const mk_str[]){MK_STR("MULTI")}, 1);
    for (size_t i = 0; i < r->n; i++)
        redis_conn_write(out, r->commands[i].parts, r->commands[i].n);
    if (r->is_whole)
        redis_conn_write(out, (const mk_str[]){MK_STR("EXEC")}, 1);
}

/* Sends them, and waits for the replies. */
static int send(struct duda *d, struct redis_queue *q, const struct request *r,
                struct duda_redis_reply *replies)
{
    struct redis_wait wait = {.d = d, .replies = replies};
    struct redis_job *job;
    int e = duda_ended(d);
    e = e ? e : redis_queue_begin(q, &wait, r->n + (r->is_whole ? 2 : 0), &job);
    if (e)
        return e;
    write_request(&q->bytes, r);
    e = redis_queue_add(q, job);
    if (e)
        return e;
    while (!wait.is_over && !(e = duda_suspend(d)))
        continue;
    if (wait.is_over)
        return wait.error;
    job->wait = NULL;
    return e;
}

static int run(struct duda *d, struct duda_redis *r, const struct request *request,
               struct duda_redis_reply *replies)
{
    int e = send(d, &r->queue, request, replies);
    return e ? explain(d, r, replies, e) : 0;
}

static bool is_refused(mk_str command)
{
    static const mk_str refused[] = {
        MK_STR("AUTH"),       MK_STR("SELECT"),     MK_STR("HELLO"),        MK_STR("RESET"),
        MK_STR("QUIT"),       MK_STR("CLIENT"),     MK_STR("MONITOR"),      MK_STR("SUBSCRIBE"),
        MK_STR("MULTI"),      MK_STR("EXEC"),       MK_STR("WATCH"),        MK_STR("DISCARD"),
        MK_STR("PSUBSCRIBE"), MK_STR("SSUBSCRIBE"), MK_STR("UNSUBSCRIBE"),  MK_STR("PUNSUBSCRIBE"),
        MK_STR("BLPOP"),      MK_STR("BRPOP"),      MK_STR("BLMOVE"),       MK_STR("BLMPOP"),
        MK_STR("BRPOPLPUSH"), MK_STR("BZPOPMIN"),   MK_STR("BZPOPMAX"),     MK_STR("BZMPOP"),
        MK_STR("WAIT"),       MK_STR("SYNC"),       MK_STR("PSYNC"),        MK_STR("WAITAOF"),
        MK_STR("REPLCONF"),   MK_STR("SHUTDOWN"),   MK_STR("SUNSUBSCRIBE"), MK_STR("UNWATCH")};
    if (command.len < 4) /* most of all commands are GET and SET */
        return false;
    for (size_t i = 0; i < MK_LEN(refused); i++)
        if (command.len == refused[i].len && mk_str_eq_nocase(command, refused[i]))
            return true;
    return false;
}

static int check(const mk_str *parts, size_t n)
{
    size_t bytes = 0;
    if (!n || n > DUDA_REDIS_PARTS_MAX || !parts[0].len)
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        if (__builtin_add_overflow(bytes, parts[i].len, &bytes) || bytes > DUDA_REDIS_BYTES_MAX)
            return -EMSGSIZE;
    return is_refused(parts[0]) ? -EOPNOTSUPP : 0;
}

int duda_redis_do(struct duda *d, struct duda_redis *r, struct duda_redis_reply *reply, const mk_str *parts,
                  size_t n)
{
    *reply = (struct duda_redis_reply){.type = DUDA_REDIS_NIL};
    int e = check(parts, n);
    if (e)
        return explain(d, r, reply, e);
    const struct duda_redis_command command = {parts, n};
    e = run(d, r, &(struct request){&command, 1, false}, reply);
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

int duda_redis_many(struct duda *d, struct duda_redis *r, const struct duda_redis_command *commands, size_t n,
                    struct duda_redis_reply *replies)
{
    int e = check_all(commands, n);
    if (n)
        memset(replies, 0, n * sizeof *replies);
    if (e)
        return n ? explain(d, r, replies, e) : e;
    return run(d, r, &(struct request){commands, n, false}, replies);
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
    e = run(d, r, &(struct request){commands, n, true}, all);
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
