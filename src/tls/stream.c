/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/stream.h"

#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "tls/bio.h"
#include "tls/connect_error.h"
#include "tls/context.h"
#include "tls/on_demand.h"
#include "tls/session.h"

enum {
    RECORDS_MAX = 64,         /* maximum records that one call reads, because records may be tiny */
    SMALL = 4096,             /* unsent data up to this size is held back, to be sent with the next data */
    UPDATES_MAX = 32,         /* key updates that any peer may send */
    UPDATE_BYTES = 16 * 1024, /* received bytes that allow one more key update */
    KEY_UPDATE = 24,          /* handshake message type (RFC 8446, section 4) */
    UPDATE_REQUESTED = 1,     /* RFC 8446, section 4.6.3: value of the byte after the message header */
    MESSAGE_HEAD = 4,
};

/* Marks the stream as failed permanently; sends OpenSSL's alert if possible. */
MK_COLD static mk_err fail_stream(struct mk_tls *t)
{
    if (t->call)
        mk_tls_connect_error_explain(t);
    if (t->broken) {
        mk_tls_bio_discard();
        return t->broken;
    }
    (void)!mk_tls_bio_flush(t, false);
    if (!t->broken)
        t->broken = -EPROTO;
    return t->broken;
}

/* ---- Closing ---- */

/* Sends close_notify, which proves that the stream was not truncated. False: no space. */
static bool send_close_notify(struct mk_tls *t)
{
    if (mk_tls_write_error(t) || !t->done)
        return true;
    if (!t->shut) {
        ERR_clear_error();
        int r = SSL_shutdown(t->ssl);
        if (r < 0 && SSL_get_error(t->ssl, r) == SSL_ERROR_WANT_WRITE)
            return false;
        t->shut = true;
    }
    return mk_tls_bio_flush(t, false) != -EAGAIN;
}

static void tls_shutdown(struct mk_stream *s)
{
    s->shutdown_pending = !send_close_notify(s->tls);
    if (!s->shutdown_pending)
        (void)shutdown(s->fd, SHUT_WR);
}

/* ---- Input ---- */

static void begin_tls_call(struct mk_stream *s, struct mk_tls *t)
{
    ERR_clear_error();
    t->stream = s; /* the owner may have moved the stream */
    t->spent = false;
    t->pulled = 0;
    s->holds = false;
}

static ssize_t handle_empty_read(struct mk_stream *s, struct mk_tls *t)
{
    switch (SSL_get_error(t->ssl, 0)) {
    case SSL_ERROR_WANT_READ:
        s->holds = t->spent;
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        if (!t->call || !t->ended)
            return 0; /* a server detects a truncated request by its length; a client needs close_notify,
                       * because a response may end with the connection */
        t->broken = -ECONNRESET;
        return fail_stream(t);
    default:
        return fail_stream(t);
    }
}

static ssize_t read_records(struct mk_stream *s, struct mk_tls *t, char *buf, size_t cap)
{
    size_t got = 0, n;
    unsigned records = 0;
    while (got < cap) {
        if (SSL_read_ex(t->ssl, buf + got, cap - got, &n) <= 0) {
            if (!got)
                return handle_empty_read(s, t);
            s->holds = SSL_get_error(t->ssl, 0) != SSL_ERROR_WANT_READ; /* the next read reports EOF */
            break;
        }
        got += n;
        t->n_received += n;
        if (s->dry && !SSL_has_pending(t->ssl))
            break;
        if (++records == RECORDS_MAX) {
            s->holds = true;
            break;
        }
    }
    if (got == cap && SSL_has_pending(t->ssl))
        s->holds = true;
    return (ssize_t)got;
}

/* Sends protocol messages: immediately if `at_once`, otherwise with the next data. While the caller waits for
 * writability (t->owed), they have to wait as well, because the caller would not learn of the result. */
static mk_err send_protocol_messages(struct mk_tls *t, bool at_once)
{
    if (!at_once || t->owed)
        return mk_tls_bio_save_unsent(t);
    mk_err e = mk_tls_bio_flush(t, false);
    return e == -EAGAIN ? 0 : e;
}

static ssize_t tls_read(struct mk_stream *s, char *buf, size_t cap)
{
    struct mk_tls *t = s->tls;
    if (t->broken)
        return t->broken;
    if (s->shutdown_pending)
        tls_shutdown(s);
    begin_tls_call(s, t);
    ssize_t n = read_records(s, t, buf, cap);
    if (t->call)
        (void)SSL_free_buffers(t->ssl); /* a ticket leaves a 16 KB buffer allocated until the next write */
    if (n < 0 && n != -EAGAIN)
        return n;
    if (n > 0 && t->spent)
        s->holds = true;
    mk_err e = send_protocol_messages(t, n < 0);
    return e && n < 0 && t->broken ? e : n;
}

/* A close_notify may arrive without a FIN. It is found when all data before it has been read. */
static bool tls_check_end(struct mk_stream *s)
{
    struct mk_tls *t = s->tls;
    char byte;
    size_t n;
    if (t->broken || SSL_pending(t->ssl))
        return t->broken;
    begin_tls_call(s, t);
    if (SSL_peek_ex(t->ssl, &byte, 1, &n) > 0) {
        s->holds = true;
        return false;
    }
    bool is_over = handle_empty_read(s, t) != -EAGAIN;
    s->dry |= !is_over && !s->holds;
    return send_protocol_messages(t, true) && t->broken ? true : is_over;
}

/* ---- Output ---- */

static size_t unsent_len(const struct mk_tls *t)
{
    return t->left ? t->left->len - t->left->from : 0;
}

static ssize_t encrypt_plaintext(struct mk_tls *t, const char *p, size_t len)
{
    size_t n;
    if (unsent_len(t) > SMALL) {
        mk_err e = mk_tls_bio_flush(t, false);
        if (e)
            return e;
    }
    ERR_clear_error();
    if (SSL_write_ex(t->ssl, p, len, &n) <= 0 || n != len)
        return fail_stream(t);
    t->owed = len;
    return 0;
}

/* Holds back a small write, such as a head, to send it with the data or the close_notify that follows. */
static ssize_t hold_small_write(struct mk_tls *t)
{
    ssize_t told = (ssize_t)t->owed;
    t->owed = 0;
    mk_err e = mk_tls_bio_save_unsent(t);
    return e ? e : told;
}

/* Reports the data as written, except for as many bytes as are still unsent. */
static ssize_t finish_write(struct mk_tls *t, size_t offered, bool more)
{
    if (more && unsent_len(t) + t->owed <= SMALL && t->owed <= offered)
        return hold_small_write(t);
    mk_err e = mk_tls_bio_flush(t, more);
    if (e && e != -EAGAIN)
        return e;
    size_t told = mk_min(t->owed - mk_min(t->owed, unsent_len(t)), offered);
    t->owed -= told;
    return told ? (ssize_t)told : -EAGAIN;
}

static ssize_t tls_write(struct mk_stream *s, mk_str bytes, bool more)
{
    struct mk_tls *t = s->tls;
    if (mk_tls_write_error(t))
        return mk_tls_write_error(t);
    if (!t->owed) {
        size_t n = mk_min(bytes.len, MK_TLS_WRITE_PLAINTEXT_MAX);
        ssize_t e = encrypt_plaintext(t, bytes.p, n);
        if (e)
            return e;
        more = more || n < bytes.len;
    }
    return finish_write(t, bytes.len, more);
}

static ssize_t tls_send_file(struct mk_stream *s, int file_fd, uint64_t offset, size_t len)
{
    struct mk_tls *t = s->tls;
    bool more = false;
    if (mk_tls_write_error(t))
        return mk_tls_write_error(t);
    if (!t->owed) {
        char *buf = mk_tls_bio_plaintext();
        ssize_t n = pread(file_fd, buf, mk_min(len, MK_TLS_WRITE_PLAINTEXT_MAX), (off_t)offset);
        if (n <= 0)
            return n < 0 ? mk_err_last() : 0;
        ssize_t e = encrypt_plaintext(t, buf, (size_t)n);
        if (e)
            return e;
        more = (size_t)n < len;
    }
    return finish_write(t, len, more);
}

/* ---- Kernel TLS ---- */

static ssize_t kernel_write(struct mk_stream *s, mk_str bytes, bool more)
{
    const struct mk_tls *t = s->tls;
    ssize_t n = t->broken ? -1 : send(s->fd, bytes.p, bytes.len, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    return t->broken ? t->broken : n < 0 ? mk_err_last() : n;
}

static ssize_t (*send_file_fn)(struct mk_stream *s, int file_fd, uint64_t offset, size_t len);

void mk_tls_stream_set_send_file(ssize_t (*send_file)(struct mk_stream *s, int file_fd, uint64_t offset,
                                                      size_t len))
{
    send_file_fn = send_file;
}

static ssize_t kernel_send_file(struct mk_stream *s, int file_fd, uint64_t offset, size_t len)
{
    const struct mk_tls *t = s->tls;
    return t->broken ? t->broken : send_file_fn(s, file_fd, offset, len);
}

/* ---- Freeing ---- */

void mk_tls_stream_free(struct mk_tls *t)
{
    if (t->call) {
        SSL_set_shutdown(t->ssl, SSL_SENT_SHUTDOWN); /* otherwise OpenSSL considers the session damaged */
        mk_mem_free(t->call->reason_text);
    }
    mk_tls_on_demand_cancel(t);
    SSL_free(t->ssl);
    mk_mem_free(t->left);
    mk_mem_free(t->early);
    mk_mem_free(t->client_cert);
    mk_mem_free(t->call);
    mk_mem_free(t);
    ERR_clear_error();
}

static void tls_close(struct mk_stream *s)
{
    struct mk_tls *t = s->tls;
    if (s->fd >= 0) {
        if (!t->left || !t->owed)
            (void)send_close_notify(t);
        (void)close(s->fd);
    }
    s->fd = -1;
    mk_tls_stream_free(t);
    s->tls = NULL;
}

static const struct mk_stream_ops tls_ops = {
    .read = tls_read,
    .check_end = tls_check_end,
    .write = tls_write,
    .send_file = tls_send_file,
    .shutdown = tls_shutdown,
    .close = tls_close,
};

static const struct mk_stream_ops kernel_ops = {
    .read = tls_read,
    .check_end = tls_check_end,
    .write = kernel_write,
    .send_file = kernel_send_file,
    .shutdown = tls_shutdown,
    .close = tls_close,
};

/* ---- Opening ---- */

static mk_err copy_early_input(struct mk_tls *t, mk_str early)
{
    if (!early.len)
        return 0;
    t->early = mk_mem_alloc(sizeof *t->early + early.len);
    if (!t->early)
        return -ENOMEM;
    t->early->from = 0;
    t->early->len = early.len;
    memcpy(t->early->bytes, early.p, early.len);
    return 0;
}

struct mk_tls *mk_tls_stream_new(int fd, SSL_CTX *ctx)
{
    struct mk_tls *t = mk_tls_bio_init_buffers() ? NULL : mk_mem_zalloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->fd = fd;
    t->ssl = SSL_new(ctx);
    BIO *b = t->ssl ? mk_tls_bio_new(t) : NULL;
    if (!b) {
        mk_tls_stream_free(t);
        return NULL;
    }
    SSL_set_bio(t->ssl, b, b);
    return t;
}

void mk_tls_stream_attach(struct mk_stream *s, struct mk_tls *t)
{
    t->stream = s;
    s->ops = &tls_ops;
    s->fd = t->fd;
    s->holds = s->shutdown_pending = false;
    s->tls = t;
}

mk_err mk_tls_stream_open(struct mk_stream *s, int fd, const struct mk_tls_domain *domain, mk_str early)
{
    const struct mk_tls_context *c = domain->choose(domain->ctx, mk_str_of(NULL, 0));
    SSL_CTX *ctx = c ? c->ctx : mk_tls_context_without_certificate();
    struct mk_tls *t = ctx ? mk_tls_stream_new(fd, ctx) : NULL;
    if (!t)
        return -ENOMEM;
    t->domain = domain;
    if (copy_early_input(t, early)) {
        mk_tls_stream_free(t);
        return -ENOMEM;
    }
    SSL_set_accept_state(t->ssl);
    mk_tls_stream_attach(s, t);
    return 0;
}

/* Limits KeyUpdates: they cost us more than they cost the peer. */
static void limit_key_updates_cb(int is_ours, int version, int type, const void *p, size_t len, SSL *ssl,
                                 void *arg)
{
    struct mk_tls *t = arg;
    const uint8_t *message = p;
    (void)version;
    (void)ssl;
    if (is_ours || type != SSL3_RT_HANDSHAKE || len <= MESSAGE_HEAD || *message != KEY_UPDATE)
        return;
    t->updates++;
    bool ours_too = message[MESSAGE_HEAD] == UPDATE_REQUESTED;
    /* Our side cannot update its keys while the kernel encrypts. */
    if (t->updates > UPDATES_MAX + t->n_received / UPDATE_BYTES || (t->kernel && ours_too))
        t->broken = -EPROTO;
}

static void finish_handshake(struct mk_stream *s, struct mk_tls *t)
{
    t->done = true;
    t->kernel = BIO_get_ktls_send(SSL_get_wbio(t->ssl)) > 0;
    if (t->kernel)
        s->ops = &kernel_ops;
    SSL_set_msg_callback(t->ssl, limit_key_updates_cb);
    SSL_set_msg_callback_arg(t->ssl, t);
    s->holds = !s->dry || SSL_has_pending(t->ssl);
    if (t->call)
        mk_tls_session_on_handshake_done(t);
}

static const char *handshake_failure_reason(const struct mk_tls *t)
{
    if (t->why)
        return t->why;
    unsigned long e = ERR_peek_last_error();
    const char *text = e ? ERR_reason_error_string(e) : NULL;
    return text ? text : "the peer is gone";
}

/* Sends the last flight, unless it can be sent with our next data: in TLS 1.3, it contains only tickets. In
 * TLS 1.2, the client waits for it. */
static mk_err send_last_flight(struct mk_tls *t)
{
    if (t->call || SSL_version(t->ssl) >= TLS1_3_VERSION)
        return mk_tls_bio_save_unsent(t);
    mk_err e = mk_tls_bio_flush(t, false);
    return e == -EAGAIN ? 0 : e;
}

/* A server may have sent an alert before it closed the connection. If a write failed, the alert is still
 * unread. */
MK_COLD static void read_pending_alert(struct mk_tls *t)
{
    char c;
    size_t n;
    t->stream->dry = false;
    begin_tls_call(t->stream, t);
    (void)SSL_read_ex(t->ssl, &c, 1, &n);
    mk_tls_bio_discard();
    mk_tls_connect_error_explain(t);
}

static mk_err advance_handshake(struct mk_stream *s, struct mk_tls *t)
{
    mk_err e = t->left ? mk_tls_bio_flush(t, false) : 0; /* the rest of a flight that did not fit */
    if (e)
        return e;
    int r = SSL_do_handshake(t->ssl);
    if (r == 1) {
        finish_handshake(s, t);
        return send_last_flight(t);
    }
    int wants = SSL_get_error(t->ssl, r);
    if (wants == SSL_ERROR_WANT_CLIENT_HELLO_CB && !s->ended)
        return -EINPROGRESS;
    if (wants != SSL_ERROR_WANT_READ && wants != SSL_ERROR_WANT_WRITE)
        return fail_stream(t);
    s->holds = t->spent;
    e = mk_tls_bio_flush(t, false);
    return e ? e : -EAGAIN;
}

mk_err mk_tls_stream_handshake(struct mk_stream *s, const char **error)
{
    struct mk_tls *t = s->tls;
    begin_tls_call(s, t);
    mk_err e = mk_tls_write_error(t) ? mk_tls_write_error(t) : advance_handshake(s, t);
    if (!e || e == -EAGAIN || e == -EINPROGRESS)
        return e;
    if (t->call && !t->why)
        read_pending_alert(t);
    if (t->call && !t->done)
        mk_tls_session_discard(t);
    *error = handshake_failure_reason(t);
    return e;
}
