/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of duda/memcache.h: commands as straight-line calls. */
#include "memcache.h"

#include <duda/asked.h>
#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

#include "command.h"
#include "sections.h"

enum { COMMAND_MAX = 4096 };

/* A handler waits for the replies to its questions; both are on its stack or in its memory. */
struct asking {
    struct duda_wait wait; /* the first */
    struct question *questions;
    size_t n, left;
};

struct question {
    struct asking *asking;
    struct memcache_job *job; /* NULL: it is over */
    struct memcache_reply reply;
    int error;
};

static const struct memcache_server *server_of(const struct duda_memcache *m, mk_str key)
{
    return &m->servers[memcache_ring_find(m->settings->points, m->settings->n, key)];
}

static void on_reply(void *ctx, const struct memcache_reply *reply, int error)
{
    struct question *q = ctx;
    q->job = NULL;
    q->error = error;
    if (reply) {
        q->reply = *reply;
        q->reply.value = reply->value.p ? duda_copy(q->asking->wait.d, reply->value) : MK_ABSENT;
        if (reply->value.p && !q->reply.value.p)
            q->error = -ENOMEM;
    }
    if (--q->asking->left == 0)
        duda_wait_wake(&q->asking->wait);
}

/* Questions without an answer get the error that has ended the handler. */
static void end_asking(struct duda_wait *w)
{
    const struct asking *a = (struct asking *)w;
    for (size_t i = 0; i < a->n; i++)
        if (a->questions[i].job) {
            a->questions[i].job->on_reply = NULL;
            a->questions[i].error = duda_ended(w->d);
        }
}

static int check(const struct duda_memcache *m, const struct memcache_command *c)
{
    int e = memcache_command_check(c->key);
    return e ? e : c->value.len > m->settings->value_max ? -EMSGSIZE : 0;
}

/* Gives the command to its server. */
static int ask(struct duda_memcache *m, struct asking *a, struct question *q,
               const struct memcache_command *c)
{
    struct memcache_job *job = mk_mem_zalloc(1, sizeof *job);
    if (!job)
        return -ENOMEM;
    struct memcache_server *s = &m->servers[memcache_ring_find(m->settings->points, m->settings->n, c->key)];
    job->bytes = mk_buf_growing(c->value.len + COMMAND_MAX);
    memcache_command_write(&job->bytes, c, mk_worker_now(s->stream.link.worker));
    job->on_reply = on_reply;
    job->ctx = q;
    int e = job->bytes.failed ? -ENOMEM : memcache_server_add(s, job);
    if (e) {
        memcache_job_free(job);
        return e;
    }
    *q = (struct question){.asking = a, .job = job};
    a->left++;
    return 0;
}

/* Waits for all of them. */
static void await(struct asking *a)
{
    int e = a->left ? duda_wait_suspend(&a->wait) : 0;
    (void)e; /* each question has its own */
    duda_wait_end(&a->wait);
}

/* ---- What a reply means ---- */

static int on_server_error(mk_str text)
{
    if (mk_str_starts(text, MK_STR("object too large")))
        return -EMSGSIZE;
    return mk_str_starts(text, MK_STR("out of memory")) ? -ENOSPC : -EREMOTEIO;
}

static int meaning(const struct question *q, enum memcache_verb verb)
{
    if (q->error)
        return q->error;
    switch (q->reply.word) {
    case MEMCACHE_DONE:
    case MEMCACHE_VALUE:
        return 0;
    case MEMCACHE_MISS:
        return -ENOENT;
    case MEMCACHE_NOT_STORED:
        return -EEXIST;
    case MEMCACHE_CHANGED:
        return -ESTALE;
    case MEMCACHE_CLIENT_ERROR:
        return verb == MEMCACHE_COUNT ? -EDOM : -EPROTO;
    case MEMCACHE_SERVER_ERROR:
        return on_server_error(q->reply.value);
    case MEMCACHE_HERE:
    default:
        return -EPROTO;
    }
}

static int run_one(struct duda *d, struct duda_memcache *m, const struct memcache_command *c,
                   struct question *q)
{
    struct asking a = {.questions = q, .n = 1};
    int e = check(m, c);
    e = e ? e : duda_wait_begin(d, &a.wait, end_asking);
    if (e)
        return e;
    e = ask(m, &a, q, c);
    await(&a);
    return e ? e : meaning(q, c->verb);
}

/* What the server says of a command is kept for duda_memcache_why(), as what happens to a connection is. */
static int explain(struct duda *d, struct duda_memcache *m, mk_str key, const struct question *q, int e)
{
    struct pack_link *l =
        &m->servers[memcache_ring_find(m->settings->points, m->settings->n, key)].stream.link;
    bool is_said = !q->error && q->reply.value.len &&
                   (q->reply.word == MEMCACHE_SERVER_ERROR || q->reply.word == MEMCACHE_CLIENT_ERROR);
    if (!e || e == -ENOENT || e == -EEXIST || e == -ESTALE || e == -ECANCELED)
        return e;
    if (is_said)
        pack_link_explain(l, q->reply.value);
    else if (e == -EMSGSIZE)
        pack_link_explain(l, MK_STR("a value is longer than MaxValueSize"));
    else if (e == -EINVAL)
        pack_link_explain(l, MK_STR("the key is empty, or too long"));
    else if (e == -EBUSY)
        pack_link_explain(l, MK_STR("more than MaxQueue commands wait"));
    else if (e == -ENOMEM || !l->why[0])
        pack_link_explain(l, mk_str_from_c(strerror(-e)));
    return duda_reason(d, e, "%s", l->why);
}

static int run(struct duda *d, struct duda_memcache *m, const struct memcache_command *c, struct question *q)
{
    struct pack_call call;
    if (!m)
        return -ENODEV;
    int e = pack_call_begin(&call, d, pack_meter(duda_worker(d), m->settings));
    if (e)
        return e;
    e = pack_call_end(&call, run_one(d, m, c, q));
    return explain(d, m, c->key, q, e);
}

static int run_plain(struct duda *d, struct duda_memcache *m, const struct memcache_command *c)
{
    struct question q = {0};
    return run(d, m, c, &q);
}

/* ---- The functions ---- */

int duda_memcache_get(struct duda *d, struct duda_memcache *m, mk_str key, mk_str *value)
{
    struct question q = {0};
    int e = run(d, m, &(struct memcache_command){.verb = MEMCACHE_GET, .key = key}, &q);
    *value = e ? MK_ABSENT : q.reply.value;
    return e;
}

static int get_many(struct duda *d, struct duda_memcache *m, struct duda_memcache_item *items, size_t n)
{
    int first = 0;
    struct question *questions =
        n > DUDA_MEMCACHE_MANY_MAX ? NULL : duda_alloc(d, (n + 1) * sizeof *questions);
    struct asking a = {.questions = questions, .n = n};
    if (!questions)
        return n > DUDA_MEMCACHE_MANY_MAX ? -EINVAL : -ENOMEM;
    memset(questions, 0, (n + 1) * sizeof *questions);
    int begun = duda_wait_begin(d, &a.wait, end_asking);
    if (begun)
        return begun;
    for (size_t i = 0; i < n; i++) {
        const struct memcache_command c = {.verb = MEMCACHE_GET_VERSION, .key = items[i].key};
        int e = check(m, &c);
        questions[i].error = e ? e : ask(m, &a, &questions[i], &c);
    }
    await(&a);
    for (size_t i = 0; i < n; i++) {
        struct question *q = &questions[i];
        int e = explain(d, m, items[i].key, q, meaning(q, MEMCACHE_GET_VERSION));
        items[i].error = e;
        items[i].value = e ? MK_ABSENT : q->reply.value;
        items[i].cas = e ? 0 : q->reply.cas;
        first = first || e == -ENOENT ? first : e;
    }
    return first;
}

int duda_memcache_get_many(struct duda *d, struct duda_memcache *m, struct duda_memcache_item *items,
                           size_t n)
{
    for (size_t i = 0; !m && i < n; i++)
        items[i].value = MK_ABSENT;
    if (!m)
        return -ENODEV;
    struct pack_call call;
    int e = pack_call_begin(&call, d, pack_meter(duda_worker(d), m->settings));
    return pack_call_end(&call, e ? e : get_many(d, m, items, n));
}

int duda_memcache_put(struct duda *d, struct duda_memcache *m, mk_str key, mk_str value, uint64_t ttl_ms)
{
    return run_plain(
        d, m, &(struct memcache_command){.verb = MEMCACHE_PUT, .key = key, .value = value, .ttl_ms = ttl_ms});
}

int duda_memcache_add(struct duda *d, struct duda_memcache *m, mk_str key, mk_str value, uint64_t ttl_ms)
{
    return run_plain(
        d, m, &(struct memcache_command){.verb = MEMCACHE_ADD, .key = key, .value = value, .ttl_ms = ttl_ms});
}

int duda_memcache_swap(struct duda *d, struct duda_memcache *m, mk_str key, uint64_t cas, mk_str value,
                       uint64_t ttl_ms)
{
    return run_plain(d, m,
                     &(struct memcache_command){
                         .verb = MEMCACHE_SWAP, .key = key, .value = value, .cas = cas, .ttl_ms = ttl_ms});
}

int duda_memcache_delete(struct duda *d, struct duda_memcache *m, mk_str key)
{
    return run_plain(d, m, &(struct memcache_command){.verb = MEMCACHE_DELETE, .key = key});
}

int duda_memcache_touch(struct duda *d, struct duda_memcache *m, mk_str key, uint64_t ttl_ms)
{
    return run_plain(d, m, &(struct memcache_command){.verb = MEMCACHE_TOUCH, .key = key, .ttl_ms = ttl_ms});
}

int duda_memcache_count(struct duda *d, struct duda_memcache *m, mk_str key, int64_t delta, uint64_t ttl_ms,
                        uint64_t *sum)
{
    struct question q = {0};
    *sum = 0;
    int e = run(
        d, m,
        &(struct memcache_command){.verb = MEMCACHE_COUNT, .key = key, .delta = delta, .ttl_ms = ttl_ms}, &q);
    return e ? e : mk_num_parse(mk_str_trim(q.reply.value), sum) ? 0 : -EPROTO;
}

mk_str duda_memcache_why(struct duda *d, const struct duda_memcache *m, mk_str key)
{
    if (!m)
        return MK_STR("there is no such [MEMCACHED]");
    return duda_copy(d, mk_str_from_c(server_of(m, key)->stream.link.why));
}
