/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of duda/memcached.h: commands as sequential code. */
#include "memcached.h"

#include <duda/memory.h>
#include <duda/request.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

#include "command.h"
#include "common/package.h"

enum { COMMAND_MAX = 4096 };

/* A handler that waits for the replies to its calls. The group and the calls are on its stack or in its
 * memory. */
struct call_group {
    struct duda_wait wait; /* must be first */
    struct pending_call *questions;
    size_t n, left;
};

struct pending_call {
    struct call_group *call_group;
    struct memcached_call *job; /* NULL: done */
    struct memcached_reply reply;
    int error;
};

static const struct memcached_conn *server_of_key(const struct duda_memcached *m, mk_str key)
{
    return &m->servers[memcached_hash_ring_find(m->settings->points, m->settings->n, key)];
}

static void on_reply(void *ctx, const struct memcached_reply *reply, int error)
{
    struct pending_call *q = ctx;
    q->job = NULL;
    q->error = error;
    if (reply) {
        q->reply = *reply;
        q->reply.value = reply->value.p ? duda_strdup(q->call_group->wait.d, reply->value) : MK_STR_NULL;
        if (reply->value.p && !q->reply.value.p)
            q->error = -ENOMEM;
    }
    if (--q->call_group->left == 0)
        duda_wait_wake(&q->call_group->wait);
}

/* Detaches the unfinished calls, which get the error that cancelled the handler. */
static void cancel_calls(struct duda_wait *w)
{
    const struct call_group *a = (struct call_group *)w;
    for (size_t i = 0; i < a->n; i++)
        if (a->questions[i].job) {
            a->questions[i].job->on_reply = NULL;
            a->questions[i].error = duda_cancelled(w->d);
        }
}

static int check_command_size(const struct duda_memcached *m, const struct memcached_command *c)
{
    int e = memcached_key_check(c->key);
    return e ? e : c->value.len > m->settings->value_max ? -EMSGSIZE : 0;
}

/* Sends the command to its server. */
static int send_command(struct duda_memcached *m, struct call_group *a, struct pending_call *q,
                        const struct memcached_command *c)
{
    struct memcached_call *job = mk_mem_zalloc(1, sizeof *job);
    if (!job)
        return -ENOMEM;
    struct memcached_conn *s =
        &m->servers[memcached_hash_ring_find(m->settings->points, m->settings->n, c->key)];
    job->bytes = mk_buf_growing(c->value.len + COMMAND_MAX);
    memcached_command_format(&job->bytes, c, mk_worker_now(s->stream.base.worker));
    job->on_reply = on_reply;
    job->ctx = q;
    int e = job->bytes.failed ? -ENOMEM : memcached_conn_send(s, job);
    if (e) {
        memcached_call_free(job);
        return e;
    }
    *q = (struct pending_call){.call_group = a, .job = job};
    a->left++;
    return 0;
}

/* Waits until all calls of the group have ended. */
static void wait_for_replies(struct call_group *a)
{
    int e = a->left ? duda_wait_suspend(&a->wait) : 0;
    (void)e; /* each call has its own error */
    duda_wait_end(&a->wait);
}

/* ---- Reply errors ---- */

static int server_error_to_errno(mk_str text)
{
    if (mk_str_starts(text, MK_STR("object too large")))
        return -EMSGSIZE;
    return mk_str_starts(text, MK_STR("out of memory")) ? -ENOSPC : -EREMOTEIO;
}

static int reply_to_errno(const struct pending_call *q, enum memcached_command_type verb)
{
    if (q->error)
        return q->error;
    switch (q->reply.word) {
    case MEMCACHED_DONE:
    case MEMCACHED_VALUE:
        return 0;
    case MEMCACHED_MISS:
        return -ENOENT;
    case MEMCACHED_NOT_STORED:
        return -EEXIST;
    case MEMCACHED_CHANGED:
        return -ESTALE;
    case MEMCACHED_CLIENT_ERROR:
        return verb == MEMCACHED_INCR ? -EDOM : -EPROTO;
    case MEMCACHED_SERVER_ERROR:
        return server_error_to_errno(q->reply.value);
    case MEMCACHED_NOOP:
    default:
        return -EPROTO;
    }
}

static int exchange_command(struct duda_ctx *d, struct duda_memcached *m, const struct memcached_command *c,
                            struct pending_call *q)
{
    struct call_group a = {.questions = q, .n = 1};
    int e = check_command_size(m, c);
    e = e ? e : duda_wait_begin(d, &a.wait, cancel_calls);
    if (e)
        return e;
    e = send_command(m, &a, q, c);
    wait_for_replies(&a);
    return e ? e : reply_to_errno(q, c->verb);
}

/* Stores the error of a command where duda_memcached_error() also finds connection errors. */
static int set_last_error(struct duda_ctx *d, struct duda_memcached *m, mk_str key,
                          const struct pending_call *q, int e)
{
    struct package_conn *l =
        &m->servers[memcached_hash_ring_find(m->settings->points, m->settings->n, key)].stream.base;
    bool is_error_reply =
        !q->error && q->reply.value.len &&
        (q->reply.word == MEMCACHED_SERVER_ERROR || q->reply.word == MEMCACHED_CLIENT_ERROR);
    if (!e || e == -ENOENT || e == -EEXIST || e == -ESTALE || e == -ECANCELED)
        return e;
    if (is_error_reply)
        package_conn_set_error(l, q->reply.value);
    else if (e == -EMSGSIZE)
        package_conn_set_error(l, MK_STR("the value exceeds MaxValueSize"));
    else if (e == -EINVAL)
        package_conn_set_error(l, MK_STR("the key is empty or too long"));
    else if (e == -EBUSY)
        package_conn_set_error(l, MK_STR("more than MaxQueue commands wait"));
    else if (e == -ENOMEM || !l->error_text[0])
        package_conn_set_error(l, mk_str_from_c(strerror(-e)));
    return duda_reason(d, e, "%s", l->error_text);
}

static int run_command(struct duda_ctx *d, struct duda_memcached *m, const struct memcached_command *c,
                       struct pending_call *q)
{
    struct package_call call;
    if (!m)
        return -ENODEV;
    int e = package_call_begin(&call, d, package_meter(duda_worker(d), m->settings));
    if (e)
        return e;
    e = package_call_end(&call, exchange_command(d, m, c, q));
    return set_last_error(d, m, c->key, q, e);
}

static int run_command_without_value(struct duda_ctx *d, struct duda_memcached *m,
                                     const struct memcached_command *c)
{
    struct pending_call q = {0};
    return run_command(d, m, c, &q);
}

/* ---- Public functions ---- */

int duda_memcached_get(struct duda_ctx *d, struct duda_memcached *m, mk_str key, mk_str *value)
{
    struct pending_call q = {0};
    int e = run_command(d, m, &(struct memcached_command){.verb = MEMCACHED_GET, .key = key}, &q);
    *value = e ? MK_STR_NULL : q.reply.value;
    return e;
}

static int get_many_values(struct duda_ctx *d, struct duda_memcached *m, struct duda_memcached_item *items,
                           size_t n)
{
    int first = 0;
    struct pending_call *questions =
        n > DUDA_MEMCACHED_MANY_MAX ? NULL : duda_alloc(d, (n + 1) * sizeof *questions);
    struct call_group a = {.questions = questions, .n = n};
    if (!questions)
        return n > DUDA_MEMCACHED_MANY_MAX ? -EINVAL : -ENOMEM;
    memset(questions, 0, (n + 1) * sizeof *questions);
    int begun = duda_wait_begin(d, &a.wait, cancel_calls);
    if (begun)
        return begun;
    for (size_t i = 0; i < n; i++) {
        const struct memcached_command c = {.verb = MEMCACHED_GET_CAS, .key = items[i].key};
        int e = check_command_size(m, &c);
        questions[i].error = e ? e : send_command(m, &a, &questions[i], &c);
    }
    wait_for_replies(&a);
    for (size_t i = 0; i < n; i++) {
        struct pending_call *q = &questions[i];
        int e = set_last_error(d, m, items[i].key, q, reply_to_errno(q, MEMCACHED_GET_CAS));
        items[i].error = e;
        items[i].value = e ? MK_STR_NULL : q->reply.value;
        items[i].cas = e ? 0 : q->reply.cas;
        first = first || e == -ENOENT ? first : e;
    }
    return first;
}

int duda_memcached_get_many(struct duda_ctx *d, struct duda_memcached *m, struct duda_memcached_item *items,
                            size_t n)
{
    for (size_t i = 0; !m && i < n; i++)
        items[i].value = MK_STR_NULL;
    if (!m)
        return -ENODEV;
    struct package_call call;
    int e = package_call_begin(&call, d, package_meter(duda_worker(d), m->settings));
    return package_call_end(&call, e ? e : get_many_values(d, m, items, n));
}

int duda_memcached_set(struct duda_ctx *d, struct duda_memcached *m, mk_str key, mk_str value,
                       uint64_t ttl_ms)
{
    return run_command_without_value(
        d, m,
        &(struct memcached_command){.verb = MEMCACHED_SET, .key = key, .value = value, .ttl_ms = ttl_ms});
}

int duda_memcached_add(struct duda_ctx *d, struct duda_memcached *m, mk_str key, mk_str value,
                       uint64_t ttl_ms)
{
    return run_command_without_value(
        d, m,
        &(struct memcached_command){.verb = MEMCACHED_ADD, .key = key, .value = value, .ttl_ms = ttl_ms});
}

int duda_memcached_cas(struct duda_ctx *d, struct duda_memcached *m, mk_str key, uint64_t cas, mk_str value,
                       uint64_t ttl_ms)
{
    return run_command_without_value(
        d, m,
        &(struct memcached_command){
            .verb = MEMCACHED_CAS, .key = key, .value = value, .cas = cas, .ttl_ms = ttl_ms});
}

int duda_memcached_delete(struct duda_ctx *d, struct duda_memcached *m, mk_str key)
{
    return run_command_without_value(d, m, &(struct memcached_command){.verb = MEMCACHED_DELETE, .key = key});
}

int duda_memcached_touch(struct duda_ctx *d, struct duda_memcached *m, mk_str key, uint64_t ttl_ms)
{
    return run_command_without_value(
        d, m, &(struct memcached_command){.verb = MEMCACHED_TOUCH, .key = key, .ttl_ms = ttl_ms});
}

int duda_memcached_incr(struct duda_ctx *d, struct duda_memcached *m, mk_str key, int64_t delta,
                        uint64_t ttl_ms, uint64_t *sum)
{
    struct pending_call q = {0};
    *sum = 0;
    int e = run_command(
        d, m,
        &(struct memcached_command){.verb = MEMCACHED_INCR, .key = key, .delta = delta, .ttl_ms = ttl_ms},
        &q);
    return e ? e : mk_num_parse(mk_str_trim(q.reply.value), sum) ? 0 : -EPROTO;
}

mk_str duda_memcached_error(struct duda_ctx *d, const struct duda_memcached *m, mk_str key)
{
    if (!m)
        return MK_STR("there is no such section [MEMCACHED]");
    return duda_strdup(d, mk_str_from_c(server_of_key(m, key)->stream.base.error_text));
}
