/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/tls_handshake.h"

#include "connection/h1.h"
#include "connection/http2.h"

/* TLS record (RFC 8446, section 5.1): type, version, length. */
enum { RECORD_HEAD = 5, RECORD_MAX = 16 * 1024, RECORD_HANDSHAKE = 22 };

#define PLAIN_TEXT "This port speaks HTTPS, and the request came without TLS. Use https:// instead.\n"

static bool wait_for_client(struct mk_conn *c)
{
    mk_conn_set_timeout(c, MK_TIMEOUT_HEAD);
    return false;
}

MK_COLD static bool reject_handshake(struct mk_conn *c, const char *error)
{
    char buf[64];
    struct mk_buf peer = mk_buf_fixed(buf, sizeof buf);
    mk_addr_format(&c->peer, &peer);
    mk_counter_add(&c->manager->counters->unsecured, 1);
    mk_log_debug(c->manager->log, "the TLS handshake with %.*s failed: %s", MK_STR_ARG(mk_buf_str(&peer)),
                 error);
    mk_conn_close(c, MK_OUTCOME_REJECTED);
    return false;
}

/* ---- The first record ---- */

/* Answers a client that sent plain HTTP to a TLS port. */
MK_COLD static bool answer_plain_http(struct mk_conn *c)
{
    mk_str text = MK_STR("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 80\r\n"
                         "Connection: close\r\n\r\n" PLAIN_TEXT);
    _Static_assert(sizeof PLAIN_TEXT - 1 == 80, "its length is written in the head");
    mk_counter_add(&c->manager->counters->unsecured, 1);
    mk_conn_consume_input(c, mk_conn_input(c).len);
    (void)c->stream.ops->write(&c->stream, text, false);
    mk_conn_linger(c, false);
    c->ops = &mk_h1_ops;
    return false;
}

/* Returns the size of the first record, or of its header while the header is incomplete; 0: not TLS. TLS
 * state is allocated only when the whole record has arrived. */
static size_t first_record_size(mk_str in)
{
    if (in.len < RECORD_HEAD)
        return in.len && in.p[0] != RECORD_HANDSHAKE ? 0 : RECORD_HEAD;
    size_t len = (size_t)(uint8_t)in.p[3] << 8 | (uint8_t)in.p[4];
    return in.p[0] != RECORD_HANDSHAKE || len > RECORD_MAX ? 0 : RECORD_HEAD + len;
}

/* Reads the first record. True: it is complete. */
static bool read_first_record(struct mk_conn *c)
{
    for (;;) {
        mk_str in = mk_conn_input(c);
        size_t n = first_record_size(in);
        if (!n)
            return mk_char_is_alpha(in.p[0]) ? answer_plain_http(c)
                                             : reject_handshake(c, "the peer does not speak TLS");
        if (in.len >= n)
            return true;
        ssize_t got = mk_conn_fill_input(c);
        if (got == -EAGAIN)
            return wait_for_client(c);
        if (got <= 0 && in.len)
            return reject_handshake(c, "the peer closed the connection");
        if (got <= 0) {
            mk_conn_close(c, MK_OUTCOME_CLIENT_ABORTED);
            return false;
        }
    }
}

static bool open_tls_stream(struct mk_conn *c)
{
    const struct mk_conn_manager *s = c->manager;
    mk_str in = mk_conn_input(c);
    mk_err e = s->tls ? s->tls->open(&c->stream, c->stream.fd, &c->hosts->tls, in) : -ENOSYS;
    if (e) {
        mk_log_warn(s->log, "a connection was closed: cannot start TLS: %s", mk_err_text(e));
        mk_conn_reset(c, MK_OUTCOME_FAILED);
        return false;
    }
    mk_conn_consume_input(c, in.len);
    return true;
}

/* ---- The handshake ---- */

static bool run_handshake(struct mk_conn *c)
{
    const char *error;
    mk_err e = c->manager->tls->handshake(&c->stream, &error);
    if (e == -EAGAIN && c->stream.holds)
        mk_conn_resume(c);
    if (e == -EAGAIN)
        return wait_for_client(c);
    if (e == -EINPROGRESS) {
        mk_conn_set_timeout(c, MK_TIMEOUT_HANDLER);
        return false;
    }
    return e ? reject_handshake(c, error) : true;
}

/* Continues the handshake. True: it is complete, and HTTP takes over. */
static bool advance_handshake(struct mk_conn *c)
{
    if (!c->stream.tls && !read_first_record(c))
        return false;
    bool is_cheap =
        c->stream.tls && c->stream.dry; /* no input arrived: only pending output needs to be sent */
    if (!is_cheap && !mk_handshake_queue_try_start(&c->manager->handshakes)) {
        mk_conn_set_timeout(c, MK_TIMEOUT_HEAD);
        mk_conn_queue_handshake(c);
        return false;
    }
    return (c->stream.tls || open_tls_stream(c)) && run_handshake(c);
}

static void hand_over_to_http(struct mk_conn *c)
{
    struct mk_tls_conn_info facts;
    mk_conn_tls_info(c, &facts);
    mk_counter_add(&c->manager->counters->secured, 1);
    mk_conn_stop_timeout(c); /* the first request gets its full timeout */
    if (mk_str_eq(facts.protocol, MK_STR("acme-tls/1"))) {
        c->ops = &mk_h1_ops; /* no request follows: the ACME server has received the challenge certificate
                              * (RFC 8737) */
        mk_conn_linger(c, false);
        mk_conn_end_serving(c);
        return;
    }
    mk_conn_set_state(c, MK_CONN_IDLE);
    if (mk_str_eq(facts.protocol, MK_STR("h2"))) {
        c->manager->http2->serve(c);
        return;
    }
    c->ops = &mk_h1_ops;
    mk_h1_serve(c);
}

void mk_tls_handshake_serve(struct mk_conn *c)
{
    c->ops = &mk_tls_handshake_ops;
    if (c->state.current == MK_CONN_IDLE)
        mk_conn_set_state(c, MK_CONN_TLS);
    if (advance_handshake(c))
        hand_over_to_http(c);
    else
        mk_conn_end_serving(c);
}

static void on_handshake_event(struct mk_conn *c)
{
    if (c->task_set)
        return; /* queued */
    mk_conn_begin_serving(c);
    mk_tls_handshake_serve(c);
}

static void on_handshake_timeout(struct mk_conn *c, enum mk_conn_timeout timeout)
{
    (void)timeout;
    if (c->stream.tls || c->n_saved)
        mk_counter_add(&c->manager->counters->unsecured, 1);
    mk_conn_close(c, MK_OUTCOME_TIMEOUT);
}

static void on_conn_close(struct mk_conn *c, enum mk_outcome outcome)
{
    (void)c;
    (void)outcome;
}

const struct mk_conn_ops mk_tls_handshake_ops = {
    .advance = on_handshake_event, .on_timeout = on_handshake_timeout, .on_close = on_conn_close};
