/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes into a connection, cut anywhere, with a peer that takes its answers in any pieces: what comes out is
 * HTTP to the last byte, one answer for each record that has a status, in their order. The first byte says
 * how many bytes of plan follow; each of these says how much comes next, and how much the peer takes. */
#include <sys/eventfd.h>

#include "proto/h1.h"
#include "proto/service.h"
#include "unit/handlers.h"
#include "unit/reply.h"
#include "unit/site.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PLAN_MAX = 32, RECORDS_MAX = 64, OUT_MAX = 1 << 23, STEPS_MAX = 2000, NUMBER_MAX = 100000 };

static struct site site;
static struct mk_loop loop;
static struct mk_counters counters;
static struct mk_service service;
static struct handlers handlers;
static struct handlers_routes routes;

static const struct mk_limits limits = {
    .head = {.head_max = 600, .target_max = 200, .fields_max = 16},
    .request.content_max = 2000,
    .request_max = 4000,
    .requests_max = 12,
    .connections_max = 4,
    .keep_alive = true,
    .head_ms = 100000,
    .idle_ms = 100000,
    .linger_ms = 100000,
    .request.tunnel_ms = 100000,
};

/* ---- The peer ---- */

static struct {
    mk_str said; /* on its way to the server, up to `arrived` */
    size_t arrived;
    bool ended;   /* nothing more will come */
    size_t takes; /* bytes that it takes before it has to be asked again; SIZE_MAX: all */
    char *heard;
    size_t n_heard;
    bool closed, shut;
} peer;

static ssize_t peer_read(struct mk_stream *s, char *room, size_t cap)
{
    (void)s;
    size_t n = mk_min(cap, peer.arrived);
    if (n == 0)
        return peer.ended && peer.said.len == 0 ? 0 : -EAGAIN;
    memcpy(room, peer.said.p, n);
    peer.said = mk_str_skip(peer.said, n);
    peer.arrived -= n;
    return (ssize_t)n;
}

static ssize_t peer_write(struct mk_stream *s, mk_str bytes, bool more)
{
    (void)s;
    (void)more;
    MK_ASSERT(!peer.shut && !peer.closed && bytes.len > 0);
    size_t n = mk_min(bytes.len, peer.takes);
    if (n == 0)
        return -EAGAIN;
    MK_ASSERT(peer.n_heard + n <= OUT_MAX);
    memcpy(peer.heard + peer.n_heard, bytes.p, n);
    peer.n_heard += n;
    peer.takes -= peer.takes == SIZE_MAX ? 0 : n;
    return (ssize_t)n;
}

static void peer_shutdown(struct mk_stream *s)
{
    (void)s;
    peer.shut = true;
}

static void peer_close(struct mk_stream *s)
{
    MK_ASSERT(!peer.closed);
    peer.closed = true;
    mk_fd_close(&s->fd);
}

static const struct mk_stream_ops peer_ops = {
    .read = peer_read, .write = peer_write, .shutdown = peer_shutdown, .close = peer_close};

/* ---- Records ---- */

static struct {
    unsigned status;
    bool is_head;
    enum mk_ending ending;
} records[RECORDS_MAX];
static unsigned n_records;

static void on_done(const struct mk_record *record, void *data)
{
    (void)data;
    MK_ASSERT(n_records < RECORDS_MAX);
    records[n_records].status = record->status;
    records[n_records].is_head = record->request->asked->method == MK_METHOD_HEAD;
    records[n_records++].ending = record->ending;
}

/* Answers as the records have them; only what was cut off may be missing, or there in part. */
static void check_answers(void)
{
    mk_str rest = mk_str_of(peer.heard, peer.n_heard);
    bool cut = false;
    for (unsigned i = 0; i < n_records; i++) {
        struct reply r;
        if (records[i].status == 0)
            continue;
        MK_ASSERT(!cut);
        enum reply_result got = reply_next(&r, &rest, records[i].is_head, true);
        MK_ASSERT(got != REPLY_BAD);
        MK_ASSERT(got != REPLY_WHOLE || r.status == records[i].status);
        if (records[i].status == 101) /* the rest is what the tunnel said */
            rest = mk_str_skip(rest, rest.len);
        MK_ASSERT(got == REPLY_WHOLE || records[i].ending == MK_ENDING_ABORTED ||
                  records[i].ending == MK_ENDING_GONE || records[i].ending == MK_ENDING_TIMEOUT);
        cut = got != REPLY_WHOLE;
        reply_fini(&r);
    }
    /* A 100 that was sent before the request ended otherwise. */
    while (mk_str_starts(rest, MK_STR("HTTP/1.1 100 Continue\r\n\r\n")))
        rest = mk_str_skip(rest, sizeof "HTTP/1.1 100 Continue\r\n\r\n" - 1);
    MK_ASSERT(rest.len == 0);
}

/* ---- The server ---- */

static void end(void)
{
    mk_service_fini(&service);
    mk_loop_fini(&loop);
    site_fini(&site);
    mk_mem_free(peer.heard);
}

static void begin(void)
{
    site_init(&site);
    site_add(&site, "index.html", MK_STR("front page"));
    site_add(&site, "index.html.gz", MK_STR("gzip"));
    static char large[3000];
    site_add(&site, "large", mk_str_of(large, sizeof large)); /* more than is kept in memory */
    site.web.on_record = on_done;
    site.web.log = NULL;
    MK_ASSERT(mk_loop_init(&loop) == 0);
    MK_ASSERT(mk_service_init(&service, &loop, &site.web, &limits, &counters, MK_STR("Monkey")) == 0);
    site.host.n_routes = handlers_route(&routes, &handlers, &mk_static);
    site.host.routes = routes.at;
    peer.heard = mk_mem_alloc(OUT_MAX);
    MK_ASSERT(peer.heard != NULL);
    atexit(end);
}

static void check_at_rest(const struct mk_conn *c)
{
    MK_ASSERT(service.out.len == 0 && !service.out.failed && service.serving == NULL);
    MK_ASSERT(c->state != MK_CONN_DEAD || peer.closed);
}

/* Everything that can happen without the peer. */
static void advance(struct mk_conn *c)
{
    c->readable = true;
    c->ops->advance(c);
    for (int i = 0; i < STEPS_MAX && loop.tasks && !peer.closed; i++)
        mk_loop_run_tasks(&loop);
    check_at_rest(c);
}

static void play(struct mk_conn *c, const uint8_t *plan, size_t n)
{
    static const size_t rooms[] = {0, 1, 7, 100, 5000, 70000, SIZE_MAX, SIZE_MAX};
    for (size_t i = 0; i < n && !peer.closed; i++) {
        peer.takes = rooms[plan[i] & 7];
        peer.arrived = mk_min(peer.arrived + (plan[i] >> 3), peer.said.len);
        advance(c);
    }
    peer.takes = SIZE_MAX;
    peer.arrived = peer.said.len;
    for (int i = 0; i < 3 && !peer.closed; i++)
        advance(c);
    peer.ended = c->ended = true;
    for (int i = 0; i < 3 && !peer.closed; i++)
        advance(c);
    for (int i = 0; i < 3 && !peer.closed; i++) { /* a connection that still waits has no more time */
        c->ops->on_clock(c, (enum mk_clock)(c->clock ? c->clock : MK_CLOCK_HANDLER));
        check_at_rest(c);
    }
}

/* A source of a billion bytes would only take time. */
static bool is_reasonable(mk_str in)
{
    uint64_t n = 0;
    for (size_t i = 0; i < in.len; i++) {
        n = mk_char_is_digit(in.p[i]) ? n * 10 + (uint64_t)(in.p[i] - '0') : 0;
        if (n > NUMBER_MAX)
            return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct mk_peer who = {.is_unix = 1};
    if (!peer.heard)
        begin();
    size_t n_plan = size ? data[0] % PLAN_MAX : 0;
    if (size < 1 + n_plan)
        return 0;
    char *heard = peer.heard;
    memset(&peer, 0, sizeof peer);
    peer.heard = heard;
    peer.said = mk_str_of((const char *)data + 1 + n_plan, size - 1 - n_plan);
    if (!is_reasonable(peer.said))
        return 0;
    n_records = 0;
    struct mk_conn *c = mk_conn_open(&service, &mk_h1_ops, eventfd(0, EFD_CLOEXEC), &who);
    MK_ASSERT(c != NULL);
    c->stream.ops = &peer_ops;
    play(c, data + 1, n_plan);
    mk_conn_close_all(&service, MK_ENDING_SHUTDOWN);
    mk_loop_run_tasks(&loop);
    MK_ASSERT(service.n_conns == 0 && peer.closed);
    check_answers();
    return 0;
}
