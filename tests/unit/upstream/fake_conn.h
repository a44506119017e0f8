/* SPDX-License-Identifier: Apache-2.0 */
/* Fakes upstream connections, a timer and the end of the loop iteration for tests of the upstream request:
 * each connection reads the arrived part of its script and records the bytes written. Include it once. */
#ifndef MK_UNIT_UPSTREAM_FAKE_CONN_H
#define MK_UNIT_UPSTREAM_FAKE_CONN_H

#include <monkey/request.h>
#include <monkey/spool.h>
#include <monkey/trace.h>
#include <monkey/worker.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "event/stream.h"
#include "unit/fake_clock.h"
#include "unit/test.h"
#include "upstream/freelist.h"
#include "upstream/server.h"

struct mk_pool;
bool mk_pool_notify_if_reused(struct mk_upstream_conn *l);
bool mk_upstream_conn_is_readable(const struct mk_upstream_conn *l);
void mk_upstream_conn_assume_readable(struct mk_upstream_conn *l);
bool mk_upstream_conn_has_eof(const struct mk_upstream_conn *l);
bool mk_upstream_conn_has_first_byte(const struct mk_upstream_conn *l);
struct mk_upstream_conn *mk_pool_acquire_for_request(struct mk_pool *p, struct mk_upstream *u,
                                                     const struct mk_upstream_conn_options *options,
                                                     void (*on_event)(void *ctx, unsigned which),
                                                     void (*on_down)(void *ctx), void *ctx);
void mk_upstream_conn_mark_cancelled(struct mk_upstream_conn *l, uint32_t ms, bool streams);
struct mk_pool *mk_pool_of_worker(const struct mk_worker *w, const struct mk_upstream *u);
struct mk_freelist *mk_pool_request_freelist(struct mk_pool *p);
void mk_pool_count_request(const struct mk_upstream_conn *l);
bool mk_pool_may_retry(struct mk_pool *p, const struct mk_upstream *u);
bool mk_pool_has_untried(const struct mk_upstream *u, uint64_t tried);
void mk_pool_count_status(const struct mk_upstream_conn *l, unsigned status);
bool mk_upstream_conn_is_unprocessed(const struct mk_upstream_conn *l);
uint32_t mk_upstream_conn_reset_code(const struct mk_upstream_conn *l);
const char *mk_upstream_conn_read_error_text(const struct mk_upstream_conn *l);

enum { FAKE_LINKS = 6, FAKE_OUT_MAX = 8 << 20, FAKE_BLOCK = 1024 };

struct mk_upstream_conn {
    /* Script. */
    int state; /* initially -EAGAIN: still connecting */
    bool was_kept;
    int server;
    mk_str in;
    int in_end;        /* result of a read after `in`: -EAGAIN, 0, or an error */
    bool is_gradual;   /* the script arrives later, by fake_arrive() */
    bool is_announced; /* an event has announced the arrival of the whole script */
    size_t record;     /* bytes that a read gets while TLS holds more; 0: all */
    size_t write_max;  /* bytes that writes accept before they would block */
    size_t takes_at_once;
    bool is_unprocessed; /* the server refused the request */
    int write_error;     /* result of later writes: -EAGAIN, or an error */

    /* Outcome. */
    bool is_acquired, is_released;
    enum mk_upstream_conn_disposition how;
    bool has_ended;             /* mk_upstream_conn_shutdown_write() was called */
    bool is_cancelled, streams; /* arguments of mk_upstream_conn_mark_cancelled() */
    uint32_t cancelled_ms;
    bool is_put_off; /* notify the request at the end of the iteration */
    struct mk_stream stream;
    unsigned n_answered, n_reads, n_writes;
    size_t arrived, at, taken;
    struct mk_buf out;
    struct mk_upstream_conn_options options;
    void (*on_ready)(void *ctx, unsigned which);
    void (*on_down)(void *ctx);
    const char *why; /* error text if it was released as failed */
    void *ctx;
};

static struct {
    struct mk_upstream_conn links[FAKE_LINKS];
    unsigned n_links, n_taken;
    unsigned n_servers;
    unsigned retries; /* retries that the budget allows */
    unsigned n_requests, n_resumed;
    struct mk_request *request; /* request whose response is spooled */
    struct mk_freelist blocks;
    struct mk_upstream upstream;
} fake;

static struct {
    char text[1 << 20];
    size_t len, at;
    size_t space;   /* spool capacity; a write beyond it returns `refusal` */
    size_t piece;   /* largest buffer that the spool offers at a time */
    int refusal;    /* -EDQUOT, or -EAGAIN while a thread writes */
    int read_error; /* result of reads, instead of spooled data */
    bool is_used;
    unsigned n_made;
    void (*on_space)(void *ctx);
    void *ctx;
} spool;

/* No request has a trace. */
const struct mk_trace *mk_request_trace(const struct mk_request *r)
{
    (void)r;
    return NULL;
}

bool mk_request_format_traceparent(const struct mk_request *r, const unsigned char span_id[8],
                                   char out[MK_TRACEPARENT_SIZE])
{
    (void)r, (void)span_id, (void)out;
    return false;
}

/* ---- Scripts ---- */

static inline void fake_init(void)
{
    memset(&fake, 0, sizeof fake);
    memset(&spool, 0, sizeof spool);
    spool.space = spool.piece = 64 * 1024;
    spool.refusal = -EDQUOT;
    fake.n_servers = 1;
    fake.retries = 100;
    fake_clock_init(1000);
}

static inline struct mk_upstream_conn *fake_add(mk_str in, int in_end)
{
    struct mk_upstream_conn *l = &fake.links[fake.n_links++];
    assert_true(fake.n_links <= FAKE_LINKS);
    *l = (struct mk_upstream_conn){
        .in = in, .in_end = in_end, .write_max = SIZE_MAX, .takes_at_once = SIZE_MAX, .write_error = -EAGAIN};
    l->out = mk_buf_growing(FAKE_OUT_MAX);
    return l;
}

static inline void fake_fini(void)
{
    for (unsigned i = 0; i < fake.n_links; i++) {
        struct mk_upstream_conn *l = &fake.links[i];
        assert_true(l->is_released || !l->is_acquired);
        mk_buf_free(&l->out);
    }
    fake_clock_fini();
    mk_freelist_fini(&fake.blocks);
}

/* ---- Events ---- */

static inline void fake_happen(struct mk_upstream_conn *l, unsigned which)
{
    if (!l->is_acquired || l->is_released)
        return;
    /* events of a failed attempt do not count, since the next attempt has its own socket */
    bool is_of_socket = l->state == 0;
    if (is_of_socket && which & (MK_READABLE | MK_ENDED | MK_HUNG_UP))
        mk_stream_on_input(&l->stream, which & (MK_ENDED | MK_HUNG_UP));
    l->on_ready(l->ctx, which);
}

static inline void fake_connect(struct mk_upstream_conn *l, int state)
{
    l->state = state;
    fake_happen(l, MK_WRITABLE);
}

/* Delivers up to n more bytes of the script, then its end. Returns false if everything had already
 * arrived. */
static inline bool fake_arrive(struct mk_upstream_conn *l, size_t n)
{
    if (l->arrived < l->in.len) {
        l->arrived += mk_min(n, l->in.len - l->arrived);
        fake_happen(l, MK_READABLE);
        return true;
    }
    if (l->arrived > l->in.len || l->in_end == -EAGAIN)
        return false;
    l->arrived++;
    fake_happen(l, MK_READABLE | (l->in_end ? MK_HUNG_UP : MK_ENDED));
    return true;
}

/* The server accepts n more bytes. */
static inline void fake_accept_more(struct mk_upstream_conn *l, size_t n)
{
    l->write_max += n;
    fake_happen(l, MK_WRITABLE);
}

/* Raises the event for data that was present from the start. */
static inline void fake_announce(struct mk_upstream_conn *l)
{
    if (l->is_gradual || l->is_announced || l->state || !l->is_acquired)
        return;
    l->is_announced = true;
    fake_happen(l, MK_READABLE);
}

static inline void fake_pass(uint64_t ms)
{
    fake_clock.now_ms += ms;
    (void)fake_clock_fire();
}

static inline bool fake_send_put_off(void)
{
    bool has_any = false;
    for (unsigned i = 0; i < fake.n_taken; i++) {
        struct mk_upstream_conn *l = &fake.links[i];
        has_any |= l->is_put_off;
        if (l->is_put_off)
            fake_happen(l, MK_WRITABLE);
        l->is_put_off = false;
    }
    return has_any;
}

/* Returns true if there was work to do. */
static inline bool fake_end_iteration(void)
{
    bool has_any = fake_send_put_off();
    if (!fake_clock_end_iteration())
        return has_any;
    return true;
}

/* ---- In-memory spool ---- */

struct mk_spool_queue *mk_spool_queue_new(struct mk_request *request, void (*on_space)(void *ctx), void *ctx)
{
    assert_true(request == fake.request);
    assert_false(spool.is_used);
    spool.is_used = true;
    spool.n_made++;
    spool.len = spool.at = 0;
    spool.on_space = on_space;
    spool.ctx = ctx;
    return (struct mk_spool_queue *)&spool;
}

int mk_spool_queue_reserve(struct mk_spool_queue *q, char **buffer, size_t *cap)
{
    assert_true((const void *)q == (const void *)&spool);
    size_t there = spool.len - spool.at;
    if (there >= spool.space)
        return spool.refusal;
    *buffer = spool.text + spool.len;
    *cap = mk_min(spool.piece, spool.space - there);
    assert_true(spool.len + *cap <= sizeof spool.text);
    return 0;
}

void mk_spool_queue_add(struct mk_spool_queue *q, size_t n)
{
    assert_true((const void *)q == (const void *)&spool);
    spool.len += n;
}

ssize_t mk_spool_queue_read(struct mk_spool_queue *q, char *buffer, size_t cap)
{
    assert_true((const void *)q == (const void *)&spool);
    size_t n = mk_min(cap, spool.len - spool.at);
    if (spool.read_error)
        return spool.read_error;
    memcpy(buffer, spool.text + spool.at, n);
    spool.at += n;
    return (ssize_t)n;
}

void mk_spool_queue_free(struct mk_spool_queue *q)
{
    if (q)
        spool.is_used = false;
}

/* ---- Functions called by the request ---- */

static inline ssize_t fake_read(struct mk_stream *s, char *buffer, size_t cap)
{
    struct mk_upstream_conn *l = MK_CONTAINER(s, struct mk_upstream_conn, stream);
    size_t there = mk_min(l->arrived, l->in.len) - l->at, n = mk_min(there, cap);
    if (l->record)
        n = mk_min(n, l->record);
    s->holds = there > n && l->record;
    if (n == 0)
        return l->arrived > l->in.len ? l->in_end : -EAGAIN;
    memcpy(buffer, l->in.p + l->at, n);
    l->at += n;
    return (ssize_t)n;
}

static const struct mk_stream_ops fake_stream_ops = {.read = fake_read};

struct mk_upstream_conn *mk_pool_acquire_for_request(struct mk_pool *p, struct mk_upstream *u,
                                                     const struct mk_upstream_conn_options *options,
                                                     void (*on_event)(void *ctx, unsigned which),
                                                     void (*on_down)(void *ctx), void *ctx)
{
    (void)p, (void)u;
    assert_true(fake.n_taken < fake.n_links);
    struct mk_upstream_conn *l = &fake.links[fake.n_taken];
    fake.n_taken++;
    l->is_acquired = true;
    l->options = *options;
    l->on_ready = on_event;
    l->on_down = on_down;
    l->ctx = ctx;
    l->stream = (struct mk_stream){.ops = &fake_stream_ops, .dry = true};
    if (!l->is_gradual)
        l->arrived = l->in.len + 1;
    return l;
}

int mk_upstream_conn_state(const struct mk_upstream_conn *l)
{
    assert_true(l->is_acquired && !l->is_released);
    return l->state;
}

bool mk_pool_notify_if_reused(struct mk_upstream_conn *l)
{
    l->is_put_off = l->was_kept && l->state == 0;
    return l->is_put_off;
}

ssize_t mk_upstream_conn_read(struct mk_upstream_conn *l, char *buffer, size_t cap)
{
    assert_int_equal(mk_upstream_conn_state(l), 0);
    assert_true(cap > 0);
    l->n_reads++;
    return mk_stream_read(&l->stream, buffer, cap);
}

bool mk_upstream_conn_is_readable(const struct mk_upstream_conn *l)
{
    return mk_stream_is_readable(&l->stream);
}

void mk_upstream_conn_assume_readable(struct mk_upstream_conn *l)
{
    l->stream.dry = false;
}

bool mk_upstream_conn_has_eof(const struct mk_upstream_conn *l)
{
    return l->stream.ended;
}

bool mk_upstream_conn_has_first_byte(const struct mk_upstream_conn *l)
{
    return l->n_answered > 0;
}

ssize_t mk_upstream_conn_write(struct mk_upstream_conn *l, mk_str bytes, bool more)
{
    (void)more;
    assert_int_equal(mk_upstream_conn_state(l), 0);
    assert_false(l->has_ended);
    assert_true(bytes.len > 0);
    l->n_writes++;
    size_t n = mk_min(mk_min(bytes.len, l->takes_at_once), l->write_max - l->taken);
    if (n == 0)
        return l->write_error;
    mk_buf_add(&l->out, mk_str_first(bytes, n));
    l->taken += n;
    return (ssize_t)n;
}

void mk_upstream_conn_shutdown_write(struct mk_upstream_conn *l)
{
    assert_int_equal(mk_upstream_conn_state(l), 0);
    l->has_ended = true;
}

bool mk_upstream_conn_was_reused(const struct mk_upstream_conn *l)
{
    return l->was_kept;
}

int mk_upstream_conn_server(const struct mk_upstream_conn *l)
{
    return l->server;
}

mk_str mk_upstream_conn_server_name(const struct mk_upstream_conn *l)
{
    static const mk_str names[] = {MK_STR_INIT("a:80"), MK_STR_INIT("b:80"), MK_STR_INIT("c:80")};
    return names[l->server];
}

void mk_upstream_conn_mark_first_byte(struct mk_upstream_conn *l)
{
    l->n_answered = 1;
}

void mk_upstream_conn_set_status(struct mk_upstream_conn *l, unsigned status);
void mk_upstream_conn_set_status(struct mk_upstream_conn *l, unsigned status)
{
    assert_true(l->is_acquired && status >= 100);
}

void mk_upstream_conn_set_error(struct mk_upstream_conn *l, int error, const char *why)
{
    assert_true(l->is_acquired && !l->is_released);
    assert_true(error < 0 && why);
    l->why = why;
}

void mk_upstream_conn_mark_cancelled(struct mk_upstream_conn *l, uint32_t ms, bool streams)
{
    assert_int_equal(mk_upstream_conn_state(l), 0);
    assert_false(l->is_cancelled);
    l->is_cancelled = true;
    l->cancelled_ms = ms;
    l->streams = streams;
}

void mk_upstream_conn_release(struct mk_upstream_conn *l, enum mk_upstream_conn_disposition how)
{
    if (how == MK_UPSTREAM_CONN_FAILED)
        assert_true(l->why != NULL);
    assert_true(l->is_acquired && !l->is_released);
    l->is_released = true;
    l->how = how;
}

mk_str mk_upstream_name(const struct mk_upstream *u)
{
    (void)u;
    return MK_STR("upstream");
}

void mk_request_log(struct mk_request *request, enum mk_log_level level, const char *fmt, ...)
{
    (void)request;
    (void)level;
    (void)fmt;
}

void mk_request_resume(struct mk_request *request)
{
    (void)request;
    fake.n_resumed++;
}

void mk_pool_count_status(const struct mk_upstream_conn *l, unsigned status)
{
    assert_true(l->is_acquired && status >= 200);
}

bool mk_pool_has_untried(const struct mk_upstream *u, uint64_t tried)
{
    (void)u;
    uint64_t all = (UINT64_C(1) << fake.n_servers) - 1;
    return (tried & all) != all;
}

struct mk_pool *mk_pool_of_worker(const struct mk_worker *w, const struct mk_upstream *u)
{
    (void)w, (void)u;
    return NULL;
}

struct mk_freelist *mk_pool_request_freelist(struct mk_pool *p)
{
    (void)p;
    fake.blocks.size = FAKE_BLOCK;
    return &fake.blocks;
}

bool mk_upstream_conn_is_unprocessed(const struct mk_upstream_conn *l)
{
    return l->is_unprocessed;
}

uint32_t mk_upstream_conn_reset_code(const struct mk_upstream_conn *l)
{
    (void)l;
    return 0;
}

const char *mk_upstream_conn_read_error_text(const struct mk_upstream_conn *l)
{
    (void)l;
    return "the connection to the server broke";
}

void mk_pool_count_request(const struct mk_upstream_conn *l)
{
    assert_true(l->is_acquired);
    fake.n_requests++;
}

bool mk_pool_may_retry(struct mk_pool *p, const struct mk_upstream *u)
{
    (void)p, (void)u;
    return fake.retries && fake.retries--;
}

#endif
