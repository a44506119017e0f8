/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of duda/redis.h that run commands. */
#include "redis.h"

#include <duda/memory.h>
#include <duda/redis.h>
#include <duda/request.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

#include "common/package.h"
#include "key_slot.h"

enum { SHOWN_MAX = 60, DEDICATED_KEPT = 16, HOPS_MAX = 5, LATER_MS = 50, ASKING_MAX = 2 };

/* Copies the error message of the server, without the arguments that it may quote. */
static int set_server_error(struct duda_ctx *d, const struct duda_redis *r,
                            const struct duda_redis_reply *reply, mk_str command)
{
    static const mk_str quote = MK_STR(", with args beginning with");
    mk_str text = reply->text;
    const char *at = text.len ? memmem(text.p, text.len, quote.p, quote.len) : NULL;
    if (at)
        text.len = (size_t)(at - text.p);
    return duda_reason(d, redis_reply_errno(reply), "[REDIS] %.*s: %.*s (%.*s)",
                       MK_STR_ARG(r->queue.conn.settings->name), MK_STR_ARG(mk_str_first(text, 350)),
                       MK_STR_ARG(mk_str_first(command, 30)));
}

/* Stores the error and the server in the reply. */
static int set_reply_error(struct duda_ctx *d, const struct redis_command_queue *q,
                           struct duda_redis_reply *reply, int e)
{
    const struct redis_settings *s = q->conn.settings;
    reply->type = DUDA_REDIS_ERROR;
    reply->text =
        q->conn.stream.base.error_text[0] && e != -EINVAL && e != -EBUSY && e != -EOPNOTSUPP &&
                e != -ECANCELED
            ? duda_strdup(d, mk_str_from_c(q->conn.stream.base.error_text))
            : duda_sprintf(d, "[REDIS] %.*s, %.*s: %s", MK_STR_ARG(s->name), MK_STR_ARG(s->server),
                           e == -EOPNOTSUPP ? "the command would change or block a connection that all "
                                              "handlers share"
                                            : strerror(-e));
    return e == -ECANCELED ? e : duda_reason(d, e, "%.*s", MK_STR_ARG(reply->text));
}

static int begin_call(struct package_call *call, struct duda_ctx *d, const struct duda_redis *r,
                      struct duda_redis_reply *reply)
{
    int e = package_call_begin(call, d, package_meter(duda_worker(d), r->queue.conn.settings));
    if (e)
        *reply = (struct duda_redis_reply){.type = DUDA_REDIS_ERROR,
                                           .text = MK_STR("[REDIS] the handler was cancelled")};
    return e;
}

static int set_crossslot_error(struct duda_ctx *d, const struct duda_redis *r, struct duda_redis_reply *reply,
                               const struct redis_crossslot *crossslot)
{
    mk_str a = mk_str_first(crossslot->a, SHOWN_MAX), b = mk_str_first(crossslot->b, SHOWN_MAX);
    reply->type = DUDA_REDIS_ERROR;
    reply->text = duda_sprintf(d,
                               "[REDIS] %.*s: the keys `%.*s` (slot %d) and `%.*s` (slot %d) may be on "
                               "different nodes: give them a common {tag}",
                               MK_STR_ARG(r->queue.conn.settings->name), MK_STR_ARG(a), crossslot->slot_a,
                               MK_STR_ARG(b), crossslot->slot_b);
    return duda_reason(d, -EXDEV,
                       "[REDIS] %.*s: the keys may be on different nodes: give them a common {tag}",
                       MK_STR_ARG(r->queue.conn.settings->name));
}

/* ---- One connection ---- */

static struct redis_dedicated_conn *acquire_dedicated_conn(struct duda_redis *r,
                                                           const struct redis_command_queue *other)
{
    const char *address = other->is_node ? other->conn.address : NULL;
    for (struct redis_dedicated_conn **at = &r->dedicated; *at; at = &(*at)->next) {
        struct redis_dedicated_conn *b = *at;
        if (b->queue.is_node != other->is_node || (address && strcmp(address, b->queue.conn.address)))
            continue;
        *at = b->next;
        r->n_dedicated--;
        if (b->queue.conn.stream.base.since_ms > other->was_replica_ms)
            return b;
        redis_dedicated_conn_free(b); /* it is connected to the demoted server */
        return acquire_dedicated_conn(r, other);
    }
    struct redis_dedicated_conn *b = mk_mem_zalloc(1, sizeof *b);
    if (b &&
        redis_command_queue_init(&b->queue, other->conn.stream.base.worker, other->conn.settings, address)) {
        redis_dedicated_conn_free(b);
        return NULL;
    }
    return b;
}

/* Keeps the connection for reuse, if possible. A connection with a command in flight is freed instead: the
 * next handler must not read that reply. */
static void release_dedicated_conn(struct duda_redis *r, struct redis_dedicated_conn *b)
{
    if (redis_command_queue_count(&b->queue) || !redis_conn_is_up(&b->queue.conn) ||
        r->n_dedicated == DEDICATED_KEPT) {
        redis_dedicated_conn_free(b);
        return;
    }
    b->next = r->dedicated;
    r->dedicated = b;
    r->n_dedicated++;
}

void redis_dedicated_conn_free(struct redis_dedicated_conn *b)
{
    redis_command_queue_fini(&b->queue);
    mk_mem_free(b);
}

static int run_on_queue(struct duda_ctx *d, struct redis_command_queue *q,
                        const struct redis_request *request, struct duda_redis_reply *replies,
                        bool *is_not_sent)
{
    struct duda_redis_reply asking_replies[1 + ASKING_MAX]; /* replies to ASKING and the commands */
    memset(asking_replies, 0, sizeof asking_replies);
    int e = redis_request_run(d, q, request, request->sends_asking ? asking_replies : replies, is_not_sent);
    if (request->sends_asking)
        memcpy(replies, asking_replies + 1, request->n * sizeof *replies);
    return e;
}

static int run_on_dedicated(struct duda_ctx *d, struct duda_redis *r, struct redis_command_queue *q,
                            const struct redis_request *request, struct duda_redis_reply *replies,
                            bool *is_not_sent)
{
    struct redis_dedicated_conn *b = acquire_dedicated_conn(r, q);
    if (!b)
        return -ENOMEM;
    int e = run_on_queue(d, &b->queue, request, replies, is_not_sent);
    if (e)
        package_conn_copy_error(&q->conn.stream.base, &b->queue.conn.stream.base);
    if (b->queue.was_replica_ms > q->was_replica_ms)
        redis_command_queue_retire(q);
    release_dedicated_conn(r, b);
    return e;
}

/* Keeps the node during the call, so that its error text can be read if the call fails. */
static int run_on_node(struct duda_ctx *d, struct duda_redis *r, struct redis_command_queue *q,
                       const struct redis_request *request, struct duda_redis_reply *replies,
                       bool *is_not_sent)
{
    *is_not_sent = false;
    q->n_users++;
    int e = request->extra_timeout_ms ? run_on_dedicated(d, r, q, request, replies, is_not_sent)
                                      : run_on_queue(d, q, request, replies, is_not_sent);
    q->n_users--;
    return e;
}

/* ---- A cluster ---- */

/* The target of a request, and its outcome. */
struct cluster_attempt {
    int slot;
    struct redis_command_queue *at;
    struct redis_command_queue *next; /* node to try next; NULL: find it in the slot map */
    bool sends_asking;
};

static enum redis_redirect run_cluster_step(struct duda_ctx *d, struct duda_redis *r,
                                            struct cluster_attempt *c, const struct redis_request *request,
                                            struct duda_redis_reply *replies, int *e)
{
    struct redis_request now = *request;
    bool is_not_sent = true;
    now.sends_asking = c->sends_asking;
    *e = 0;
    c->at = c->next;
    if (!c->at)
        *e = redis_cluster_find_node(d, r->cluster, c->slot, &c->at);
    if (!*e)
        *e = run_on_node(d, r, c->at, &now, replies, &is_not_sent);
    c->next = NULL;
    c->sends_asking = false;
    if (*e) {
        redis_cluster_invalidate(r->cluster);
        return is_not_sent ? REDIS_REDIRECT_RETRY : REDIS_REDIRECT_NONE;
    }
    enum redis_redirect redirect =
        redis_cluster_parse_redirect(r->cluster, replies, redis_request_reply_count(request), &c->next);
    if (redirect == REDIS_REDIRECT_ASK &&
        (request->is_transaction || request->n > ASKING_MAX)) { /* ASKING applies to one command only */
        c->next = NULL;
        return REDIS_REDIRECT_RETRY;
    }
    c->sends_asking = redirect == REDIS_REDIRECT_ASK;
    return redirect;
}

/* Until Timeout expires, retries commands that no node has executed, because a replica may become the master
 * in the meantime. */
static int run_on_cluster(struct duda_ctx *d, struct duda_redis *r, int slot,
                          const struct redis_request *request, struct duda_redis_reply *replies)
{
    struct cluster_attempt c = {.slot = slot};
    uint64_t end = mk_worker_now_ms(duda_worker(d)) + r->queue.conn.settings->timeout_ms;
    int e = 0;
    for (unsigned hops = 0;; hops++) {
        enum redis_redirect redirect = run_cluster_step(d, r, &c, request, replies, &e);
        if (redirect == REDIS_REDIRECT_NONE || mk_worker_now_ms(duda_worker(d)) >= end)
            return e ? set_reply_error(d, c.at, replies, e) : 0;
        if (redirect != REDIS_REDIRECT_RETRY && hops < HOPS_MAX)
            continue;
        c.next = NULL; /* the node may be freed during the sleep */
        e = duda_sleep(d, LATER_MS);
        if (e)
            return set_reply_error(d, &r->queue, replies, e);
    }
}

/* Returns the common slot of all commands. */
static int request_slot(const struct redis_request *request, struct redis_crossslot *crossslot)
{
    int slot = REDIS_NO_KEY;
    mk_str key = MK_STR_NULL;
    for (size_t i = 0; i < request->n; i++) {
        const struct duda_redis_command *c = &request->commands[i];
        int other = redis_command_slot(c->args, c->n, crossslot);
        if (other == -EXDEV)
            return other;
        if (slot >= 0 && other >= 0 && other != slot) {
            *crossslot = (struct redis_crossslot){key, c->n > 1 ? c->args[1] : c->args[0], slot, other};
            return -EXDEV;
        }
        if (slot < 0 && c->n > 1)
            key = c->args[1];
        slot = other >= 0 ? other : slot;
    }
    return slot;
}

static int route_request(struct duda_ctx *d, struct duda_redis *r, const struct redis_request *request,
                         struct duda_redis_reply *replies)
{
    struct redis_crossslot crossslot;
    bool is_not_sent;
    if (r->cluster) {
        int slot = request_slot(request, &crossslot);
        return slot == -EXDEV ? set_crossslot_error(d, r, replies, &crossslot)
                              : run_on_cluster(d, r, slot, request, replies);
    }
    int e = run_on_node(d, r, &r->queue, request, replies, &is_not_sent);
    return e ? set_reply_error(d, &r->queue, replies, e) : 0;
}

/* Returns whether the server has rejected the command or the transaction. */
static bool is_error_reply(const struct redis_request *request, const struct duda_redis_reply *replies)
{
    return replies[request->is_transaction ? request->n + 1 : 0].type == DUDA_REDIS_ERROR &&
           (request->is_transaction || request->n == 1);
}

static int run_request(struct duda_ctx *d, struct duda_redis *r, const struct redis_request *request,
                       struct duda_redis_reply *replies)
{
    struct package_call call;
    int e = begin_call(&call, d, r, replies);
    if (e)
        return e;
    e = route_request(d, r, request, replies);
    package_call_end(&call, !e && is_error_reply(request, replies) ? -EREMOTEIO : e);
    return e;
}

/* Starts commands for several nodes, each separately; all are sent at the end of this loop iteration. */
static int begin_pipelined_requests(struct redis_request_group *a, struct duda_redis *r,
                                    const struct redis_request *request, struct duda_redis_reply *replies,
                                    int *results)
{
    struct duda_ctx *d = a->wait.d;
    int e = 0;
    for (size_t i = 0; i < request->n && !e; i++) {
        const struct redis_request single = {.commands = &request->commands[i], .n = 1};
        struct redis_crossslot crossslot;
        struct redis_command_queue *q;
        int slot = request_slot(&single, &crossslot);
        results[i] = slot == -EXDEV ? set_crossslot_error(d, r, &replies[i], &crossslot) : 0;
        if (results[i])
            continue;
        e = redis_cluster_find_node(d, r->cluster, slot, &q);
        results[i] = e ? e : redis_request_begin(a, q, &single, &replies[i], &a->all[i]);
    }
    return e;
}

/* Retries commands that a node has not executed or has redirected, unless the handler is cancelled. */
static int end_pipelined_requests(struct duda_ctx *d, struct duda_redis *r,
                                  const struct redis_request *request, struct duda_redis_reply *replies,
                                  const struct redis_pending_request *all, int *results)
{
    int first = 0;
    for (size_t i = 0; i < request->n && !duda_cancelled(d); i++) {
        const struct redis_request single = {.commands = &request->commands[i], .n = 1};
        struct redis_command_queue *to;
        bool again =
            results[i] ? all[i].wait.is_not_sent
                       : redis_cluster_parse_redirect(r->cluster, &replies[i], 1, &to) != REDIS_REDIRECT_NONE;
        if (again)
            results[i] = route_request(d, r, &single, &replies[i]);
        else if (results[i] && results[i] != -EXDEV)
            (void)set_reply_error(d, &r->queue, &replies[i], results[i]);
    }
    for (size_t i = request->n; i-- > 0;)
        first = results[i] ? results[i] : first;
    return duda_cancelled(d) ? duda_cancelled(d) : first;
}

static int run_pipelined_requests(struct duda_ctx *d, struct duda_redis *r,
                                  const struct redis_request *request, struct duda_redis_reply *replies)
{
    struct redis_pending_request *all = duda_alloc(d, request->n * sizeof *all);
    int *results = duda_alloc(d, request->n * sizeof *results);
    if (!all || !results)
        return set_reply_error(d, &r->queue, replies, -ENOMEM);
    struct redis_request_group a;
    int e = redis_request_group_begin(&a, d, all, request->n);
    if (e)
        return e;
    for (size_t i = 0; i < request->n; i++)
        results[i] = -ECANCELED;
    e = begin_pipelined_requests(&a, r, request, replies, results);
    for (size_t i = 0; i < request->n; i++)
        if (!results[i])
            results[i] = redis_request_wait(&a, &all[i]);
    duda_wait_end(&a.wait);
    int after = end_pipelined_requests(d, r, request, replies, all, results);
    return e ? set_reply_error(d, &r->queue, replies, e) : after;
}

static int run_counted_pipeline(struct duda_ctx *d, struct duda_redis *r, const struct redis_request *request,
                                struct duda_redis_reply *replies)
{
    struct package_call call;
    int e = begin_call(&call, d, r, replies);
    return package_call_end(&call, e ? e : run_pipelined_requests(d, r, request, replies));
}

/* ---- Commands ---- */

static bool is_in_command_list(mk_str command, const mk_str *names, size_t n)
{
    if (command.len < 4) /* most commands are GET and SET */
        return false;
    for (size_t i = 0; i < n; i++)
        if (command.len == names[i].len && mk_str_eq_nocase(command, names[i]))
            return true;
    return false;
}

/* Returns whether the command would change the state of the shared connection. */
static bool is_forbidden_command(mk_str command)
{
    static const mk_str forbidden[] = {
        MK_STR("AUTH"),       MK_STR("SELECT"),     MK_STR("HELLO"),        MK_STR("RESET"),
        MK_STR("QUIT"),       MK_STR("CLIENT"),     MK_STR("MONITOR"),      MK_STR("SUBSCRIBE"),
        MK_STR("MULTI"),      MK_STR("EXEC"),       MK_STR("WATCH"),        MK_STR("DISCARD"),
        MK_STR("PSUBSCRIBE"), MK_STR("SSUBSCRIBE"), MK_STR("UNSUBSCRIBE"),  MK_STR("PUNSUBSCRIBE"),
        MK_STR("SYNC"),       MK_STR("PSYNC"),      MK_STR("SUNSUBSCRIBE"), MK_STR("UNWATCH"),
        MK_STR("REPLCONF"),   MK_STR("SHUTDOWN"),   MK_STR("ASKING"),       MK_STR("READONLY"),
        MK_STR("READWRITE"),  MK_STR("WAIT"),       MK_STR("WAITAOF")};
    return is_in_command_list(command, forbidden, MK_LEN(forbidden));
}

/* Returns whether the command would block the shared connection. */
static bool is_blocking_command(const mk_str *parts, size_t n)
{
    static const mk_str blocking[] = {MK_STR("BLPOP"),    MK_STR("BRPOP"),      MK_STR("BLMOVE"),
                                      MK_STR("BLMPOP"),   MK_STR("BRPOPLPUSH"), MK_STR("BZPOPMIN"),
                                      MK_STR("BZPOPMAX"), MK_STR("BZMPOP")};
    static const mk_str reading[] = {MK_STR("XREAD"), MK_STR("XREADGROUP")};
    if (is_in_command_list(parts[0], blocking, MK_LEN(blocking)))
        return true;
    if (!is_in_command_list(parts[0], reading, MK_LEN(reading)))
        return false;
    for (size_t i = 1; i < n && !mk_str_eq_nocase(parts[i], MK_STR("STREAMS")); i++)
        if (mk_str_eq_nocase(parts[i], MK_STR("BLOCK")))
            return true;
    return false;
}

static bool uses_reserved_key(const mk_str *parts, size_t n)
{
    size_t i = 0;
    while (i < n && !redis_is_reserved_key(parts[i]))
        i++;
    return i < n;
}

static int check_command(const mk_str *parts, size_t n, bool blocks)
{
    size_t bytes = 0;
    if (!n || n > DUDA_REDIS_ARGS_MAX || !parts[0].len)
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        if (__builtin_add_overflow(bytes, parts[i].len, &bytes) || bytes > DUDA_REDIS_SIZE_MAX)
            return -EMSGSIZE;
    return is_forbidden_command(parts[0]) || (!blocks && is_blocking_command(parts, n)) ? -EOPNOTSUPP : 0;
}

/* Sets the error for a command of a service that uses a key reserved for Duda. */
static int reject_reserved_key(struct duda_ctx *d, const struct duda_redis *r, struct duda_redis_reply *reply)
{
    *reply = (struct duda_redis_reply){
        .type = DUDA_REDIS_ERROR,
        .text = duda_sprintf(d,
                             "[REDIS] %.*s: keys and channels that begin with `" REDIS_RESERVED_PREFIX
                             "` are reserved for Duda",
                             MK_STR_ARG(r->queue.conn.settings->name))};
    return -EPERM;
}

static int run_command(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                       const mk_str *parts, size_t n, uint64_t extra_timeout_ms)
{
    const struct duda_redis_command command = {parts, n};
    *reply = (struct duda_redis_reply){.type = DUDA_REDIS_NIL};
    int e = check_command(parts, n, extra_timeout_ms > 0);
    if (e)
        return set_reply_error(d, &r->queue, reply, e);
    e = run_request(
        d, r, &(struct redis_request){.commands = &command, .n = 1, .extra_timeout_ms = extra_timeout_ms},
        reply);
    return !e && reply->type == DUDA_REDIS_ERROR ? set_server_error(d, r, reply, parts[0]) : e;
}

int redis_do_internal(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                      const mk_str *parts, size_t n)
{
    return run_command(d, r, reply, parts, n, 0);
}

int duda_redis_do(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                  const mk_str *parts, size_t n)
{
    if (!r) {
        *reply = (struct duda_redis_reply){.type = DUDA_REDIS_ERROR,
                                           .text = MK_STR("there is no such section [REDIS]")};
        return -ENODEV;
    }
    return uses_reserved_key(parts, n) ? reject_reserved_key(d, r, reply)
                                       : redis_do_internal(d, r, reply, parts, n);
}

int duda_redis_blocking(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply, uint32_t ms,
                        const mk_str *parts, size_t n)
{
    if (!r) {
        *reply = (struct duda_redis_reply){.type = DUDA_REDIS_ERROR,
                                           .text = MK_STR("there is no such section [REDIS]")};
        return -ENODEV;
    }
    return uses_reserved_key(parts, n) ? reject_reserved_key(d, r, reply)
                                       : run_command(d, r, reply, parts, n,
                                                     ms == MK_FOREVER ? UINT64_MAX
                                                     : ms             ? ms
                                                                      : 1);
}

static int write_and_wait_for_replicas(struct duda_ctx *d, struct duda_redis *r,
                                       struct duda_redis_reply *reply, unsigned replicas, uint32_t ms,
                                       const mk_str *parts, size_t n, int64_t *have)
{
    *have = 0;
    /* for WAIT, 0 means no limit */
    const uint32_t wait_ms = ms == MK_FOREVER ? 0 : ms ? ms : 1;
    const mk_str wait[] = {MK_STR("WAIT"), duda_sprintf(d, "%u", replicas), duda_sprintf(d, "%u", wait_ms)};
    const struct duda_redis_command commands[] = {{parts, n}, {wait, 3}};
    const struct redis_request request = {
        .commands = commands, .n = 2, .extra_timeout_ms = wait_ms ? wait_ms : UINT64_MAX};
    struct duda_redis_reply replies[2];
    memset(replies, 0, sizeof replies);
    int e = check_command(parts, n, false);
    e = e ? set_reply_error(d, &r->queue, replies, e) : run_request(d, r, &request, replies);
    *reply = replies[0];
    if (e || reply->type == DUDA_REDIS_ERROR)
        return e ? e : set_server_error(d, r, reply, parts[0]);
    *have = replies[1].type == DUDA_REDIS_NUMBER ? replies[1].number : 0;
    return 0;
}

int duda_redis_write_replicated(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                                unsigned replicas, uint32_t ms, const mk_str *parts, size_t n)
{
    if (!r) {
        *reply = (struct duda_redis_reply){.type = DUDA_REDIS_ERROR,
                                           .text = MK_STR("there is no such section [REDIS]")};
        return -ENODEV;
    }
    int64_t have;
    if (uses_reserved_key(parts, n))
        return reject_reserved_key(d, r, reply);
    int e = write_and_wait_for_replicas(d, r, reply, replicas, ms, parts, n, &have);
    if (e || have >= replicas)
        return e;
    reply->type = DUDA_REDIS_ERROR;
    reply->text = duda_sprintf(d, "[REDIS] %.*s: only %lld of %u replicas have confirmed the write",
                               MK_STR_ARG(r->queue.conn.settings->name), (long long)have, replicas);
    return -ENOLINK;
}

int redis_do_replicated(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                        const mk_str *parts, size_t n, bool *is_kept)
{
    const struct redis_settings *s = r->queue.conn.settings;
    int64_t have;
    *is_kept = true;
    if (!s->replicas)
        return redis_do_internal(d, r, reply, parts, n);
    int e = write_and_wait_for_replicas(d, r, reply, s->replicas, s->timeout_ms, parts, n, &have);
    *is_kept = !e && have >= s->replicas;
    return e;
}

/* ---- Pipelines and transactions ---- */

static int check_commands(const struct duda_redis_command *commands, size_t n)
{
    int e = n && n <= DUDA_REDIS_PIPELINE_MAX ? 0 : -EINVAL;
    for (size_t i = 0; i < n && !e; i++)
        e = check_command(commands[i].args, commands[i].n, false);
    return e;
}

static bool any_uses_reserved_key(const struct duda_redis_command *commands, size_t n)
{
    size_t i = 0;
    while (i < n && i < DUDA_REDIS_PIPELINE_MAX && !uses_reserved_key(commands[i].args, commands[i].n))
        i++;
    return i < n && i < DUDA_REDIS_PIPELINE_MAX;
}

int redis_pipeline_internal(struct duda_ctx *d, struct duda_redis *r,
                            const struct duda_redis_command *commands, size_t n,
                            struct duda_redis_reply *replies)
{
    if (!r && n)
        memset(replies, 0, n * sizeof *replies);
    if (!r)
        return -ENODEV;
    int e = check_commands(commands, n);
    if (n)
        memset(replies, 0, n * sizeof *replies);
    if (e)
        return n ? set_reply_error(d, &r->queue, replies, e) : e;
    const struct redis_request request = {.commands = commands, .n = n};
    return (r->cluster ? run_counted_pipeline : run_request)(d, r, &request, replies);
}

int duda_redis_pipeline(struct duda_ctx *d, struct duda_redis *r, const struct duda_redis_command *commands,
                        size_t n, struct duda_redis_reply *replies)
{
    if (!r || !any_uses_reserved_key(commands, n))
        return redis_pipeline_internal(d, r, commands, n, replies);
    memset(replies, 0, n * sizeof *replies);
    return reject_reserved_key(d, r, replies);
}

/* Unpacks the reply to EXEC, which is a list of the replies to the commands. */
static int unpack_exec_reply(const struct duda_redis_reply *all, size_t n, struct duda_redis_reply *replies)
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
    return redis_reply_errno(&replies[0]);
}

int duda_redis_transaction(struct duda_ctx *d, struct duda_redis *r,
                           const struct duda_redis_command *commands, size_t n,
                           struct duda_redis_reply *replies)
{
    if (!r && n)
        memset(replies, 0, n * sizeof *replies);
    if (!r)
        return -ENODEV;
    int e = check_commands(commands, n);
    if (n)
        memset(replies, 0, n * sizeof *replies);
    if (!e && any_uses_reserved_key(commands, n))
        return reject_reserved_key(d, r, replies);
    if (e)
        return n ? set_reply_error(d, &r->queue, replies, e) : e;
    struct duda_redis_reply *all = duda_alloc(d, (n + 2) * sizeof *all);
    if (!all)
        return set_reply_error(d, &r->queue, replies, -ENOMEM);
    memset(all, 0, (n + 2) * sizeof *all);
    e = run_request(d, r, &(struct redis_request){.commands = commands, .n = n, .is_transaction = true}, all);
    if (!e)
        return unpack_exec_reply(all, n, replies) ? set_server_error(d, r, &replies[0], MK_STR("MULTI")) : 0;
    replies[0] = all[0];
    return e;
}

/* ---- Scripts ---- */

static int load_script(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                       struct duda_redis_script *script)
{
    const mk_str parts[] = {MK_STR("SCRIPT"), MK_STR("LOAD"), mk_str_from_c(script->source)};
    int e = redis_do_internal(d, r, reply, parts, MK_LEN(parts));
    if (e)
        return e;
    if (reply->text.len != sizeof script->sha - 1)
        return set_reply_error(d, &r->queue, reply, -EPROTO);
    memcpy(script->sha, reply->text.p, sizeof script->sha);
    return 0;
}

static int send_script_command(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                               const mk_str *parts, size_t n, bool *is_kept)
{
    return is_kept ? redis_do_replicated(d, r, reply, parts, n, is_kept)
                   : redis_do_internal(d, r, reply, parts, n);
}

int redis_eval_replicated(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                          struct duda_redis_script *script, size_t n_keys, const mk_str *arguments, size_t n,
                          bool *is_kept)
{
    *reply = (struct duda_redis_reply){.type = DUDA_REDIS_NIL};
    mk_str *parts = n <= DUDA_REDIS_ARGS_MAX ? duda_alloc(d, (n + 3) * sizeof *parts) : NULL;
    if (!parts || n_keys > n)
        return set_reply_error(d, &r->queue, reply, parts ? -EINVAL : -ENOMEM);
    parts[0] = MK_STR("EVALSHA");
    parts[2] = duda_sprintf(d, "%zu", n_keys);
    if (n)
        memcpy(parts + 3, arguments, n * sizeof *parts);
    int e = script->sha[0] ? 0 : load_script(d, r, reply, script);
    parts[1] = mk_str_from_c(script->sha);
    e = e ? e : send_script_command(d, r, reply, parts, n + 3, is_kept);
    if (e != -EREMOTEIO || !mk_str_starts(reply->text, MK_STR("NOSCRIPT")))
        return e;
    parts[0] = MK_STR("EVAL"); /* the server was restarted or replaced: EVAL sends the whole script */
    parts[1] = mk_str_from_c(script->source);
    return send_script_command(d, r, reply, parts, n + 3, is_kept);
}

int duda_redis_eval(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                    struct duda_redis_script *script, size_t n_keys, const mk_str *arguments, size_t n)
{
    if (!r) {
        *reply = (struct duda_redis_reply){.type = DUDA_REDIS_ERROR,
                                           .text = MK_STR("there is no such section [REDIS]")};
        return -ENODEV;
    }
    if (n <= DUDA_REDIS_ARGS_MAX && uses_reserved_key(arguments, n))
        return reject_reserved_key(d, r, reply);
    return redis_eval_replicated(d, r, reply, script, n_keys, arguments, n, NULL);
}
