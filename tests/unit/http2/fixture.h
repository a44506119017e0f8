/* SPDX-License-Identifier: Apache-2.0 */
/* Adds an HTTP/2 client to connection/fixture.h. The client collects its frames until h2_conn_run(). */
#ifndef MK_UNIT_HTTP2_FIXTURE_H
#define MK_UNIT_HTTP2_FIXTURE_H

#include "http2/h2.h"
#include "http2/h2_stream.h"
#include "unit/connection/fixture.h"
#include "unit/h2_client.h"
#include "unit/harness.h"

extern const struct mk_http2_module mk_h2_module;

enum { H2_CONN_PATIENCE = 100, H2_CONN_STREAMS = 10, H2_CONN_UNREAD = 2 * 1024 * 1024 };

struct h2_conn {
    struct conn_fixture conn;
    struct h2_client client;
    struct mk_buf say;
};

static inline void h2_conn_init(struct h2_conn *h)
{
    conn_init(&h->conn);
    h->conn.limits.h2 = (struct mk_h2_limits){.on = true,
                                              .streams_max = H2_CONN_STREAMS,
                                              .unread_max = H2_CONN_UNREAD,
                                              .abuse_budget = H2_CONN_PATIENCE};
    mk_conn_manager_set_http2(&h->conn.manager, &mk_h2_module);
    h->conn.site.host.pack_head = mk_h2_module.pack_head;
    h->say = mk_buf_growing(1 << 26);
}

static inline void h2_conn_fini(struct h2_conn *h)
{
    h2_fini(&h->client);
    mk_buf_free(&h->say);
    conn_fini(&h->conn);
}

HARNESS_FIXTURE(h2_conn, struct h2_conn);

/* Validates the received frames. */
static inline void h2_conn_receive(struct h2_conn *h)
{
    struct conn_fixture *t = &h->conn;
    t->read += h2_receive(&h->client, conn_received(t));
    if (h->client.why)
        fail_msg("on stream %u: %s", h->client.where, h->client.why);
}

/* Sends the collected frames; the server does not read them yet. */
static inline void h2_conn_send(struct h2_conn *h)
{
    conn_send_bytes(&h->conn, mk_buf_str(&h->say));
    mk_buf_clear(&h->say);
}

/* Sends all collected frames, in one piece if they fit, and runs both sides until nothing more happens. */
static inline void h2_conn_run(struct h2_conn *h)
{
    struct conn_fixture *t = &h->conn;
    mk_str left = mk_buf_str(&h->say);
    while (left.len && !t->ended && !t->reset) {
        ssize_t n = send(t->fd, left.p, left.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        left = mk_str_skip(left, n > 0 ? (size_t)n : 0);
        if (left.len)
            conn_run(t);
    }
    mk_buf_clear(&h->say);
    conn_run(t);
    h2_conn_receive(h);
}

static inline void h2_conn_run_for(struct h2_conn *h, unsigned ms)
{
    conn_run_for(&h->conn, ms);
    h2_conn_receive(h);
}

/* Opens a new connection and exchanges SETTINGS. */
static inline void h2_conn_open(struct h2_conn *h)
{
    h2_fini(&h->client);
    h2_init(&h->client);
    mk_buf_clear(&h->say);
    conn_open(&h->conn, "");
    h2_send_preface(&h->client, &h->say);
    h2_conn_run(h);
    conn_expect_state(&h->conn, MK_CONN_HTTP2);
    assert_int_equal(h->client.n_settings, 1);
    assert_int_equal(h->client.n_pending, 0);
}

static inline struct h2_stream *h2_conn_get(struct h2_conn *h, uint32_t id, const char *target)
{
    return h2_get(&h->client, &h->say, id, target);
}

static inline struct h2_stream *h2_conn_post(struct h2_conn *h, uint32_t id, const char *target,
                                             const char *fields)
{
    return h2_send_request(&h->client, &h->say, id, "POST", target, false, fields);
}

static inline void h2_conn_data(struct h2_conn *h, uint32_t id, const char *text, bool ends)
{
    h2_send_data(&h->client, &h->say, id, mk_str_from_c(text), ends);
}

/* Uploads n bytes of 'x' within the flow-control windows while the server runs. Returns false if the windows
 * did not allow all bytes. */
static inline bool h2_conn_upload(struct h2_conn *h, uint32_t id, size_t n, bool ends)
{
    static char piece[MK_H2_FRAME_MAX];
    memset(piece, 'x', sizeof piece);
    for (;;) {
        struct h2_stream *s = h2_find(&h->client, id);
        int64_t window = s->upload < h->client.upload ? s->upload : h->client.upload;
        size_t part = mk_min(n, sizeof piece);
        if (s->reset || h->conn.ended || h->conn.reset || h->client.error || (window <= 0 && n))
            return false;
        part = (int64_t)part > window ? (size_t)window : part;
        n -= part;
        h2_send_data(&h->client, &h->say, id, mk_str_of(piece, part), ends && !n);
        h2_conn_run(h);
        if (!n)
            return true;
    }
}

/* Routes all requests to this handler. */
static inline void h2_conn_route(struct h2_conn *h, const struct mk_handler *handler)
{
    static struct mk_route route;
    route =
        (struct mk_route){.pattern = {.text = MK_STR_INIT("/*"), .kind = MK_PATTERN_ALL}, .handler = handler};
    h->conn.site.host.routes = &route;
    h->conn.site.host.n_routes = 1;
}

/* ---- Expectations ---- */

/* Expects a complete response. NULL content: any. */
static inline void h2_conn_expect(struct h2_conn *h, uint32_t id, unsigned status, const char *content)
{
    struct h2_stream *s = h2_find(&h->client, id);
    if (!s || !s->ended || s->status != status)
        fail_msg("no response %u on stream %u: status %u, %s%s", status, id, s ? s->status : 0,
                 s && s->ended ? "ended" : "not ended", s && s->reset ? ", reset" : "");
    if (content)
        assert_str(mk_buf_str(&s->content), content);
}

static inline void h2_conn_expect_reset(struct h2_conn *h, uint32_t id, enum mk_h2_error error)
{
    struct h2_stream *s = h2_find(&h->client, id);
    if (!s->reset || s->error != error)
        fail_msg("stream %u was not reset for %d: %s%d", id, error, s->reset ? "for " : "not at all ",
                 (int)s->error);
}

/* Expects that the stream has received neither a response nor a reset. */
static inline void h2_conn_expect_open(struct h2_conn *h, uint32_t id)
{
    struct h2_stream *s = h2_find(&h->client, id);
    if (s->ended || s->reset)
        fail_msg("stream %u has ended: status %u, error %d", id, s->status, (int)s->error);
}

/* Expects that the connection was closed with this error and that the reason was counted. */
static inline void h2_conn_expect_failed(struct h2_conn *h, enum mk_h2_error error, enum mk_h2_reason why)
{
    if (!h->client.n_goaways || h->client.error != error)
        fail_msg("no GOAWAY for %d: %u of them, the last for %d", error, h->client.n_goaways,
                 (int)h->client.error);
    assert_true(h->conn.ended || h->conn.reset);
    for (unsigned i = 0; i < MK_H2_REASONS; i++)
        if (h->conn.counters.h2_ended[i] != (i == why))
            fail_msg("%s was counted %u times", mk_conn_manager_h2_reason_names[i],
                     (unsigned)h->conn.counters.h2_ended[i]);
}

/* Expects an open connection without streams. */
static inline void h2_conn_expect_idle(struct h2_conn *h)
{
    conn_expect_state(&h->conn, MK_CONN_HTTP2);
    assert_false(h->conn.ended || h->conn.reset);
    assert_int_equal(h->conn.conn->h2->n_streams, 0);
    assert_int_equal(h->client.n_goaways, 0);
    assert_true(mk_send_queue_is_empty(&h->conn.conn->out));
}

static inline void h2_conn_expect_records(struct h2_conn *h, unsigned n, unsigned status,
                                          enum mk_outcome outcome)
{
    assert_int_equal(h->conn.n_records, n);
    assert_int_equal(h->conn.statuses[n - 1], status);
    if (h->conn.outcomes[n - 1] != outcome)
        fail_msg("it ended as %s", mk_outcome_name(h->conn.outcomes[n - 1]));
}

#endif
