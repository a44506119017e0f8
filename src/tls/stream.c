/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/stream.h"

#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "tls/bio.h"
#include "tls/context.h"
#include "tls/out.h"
#include "tls/session.h"
#include "tls/verdict.h"

enum {
    RECORDS_MAX = 64,         /* read in one call: they may be tiny */
    SMALL = 4096,             /* what was kept and can go with the next content */
    UPDATES_MAX = 32,         /* changes of keys that nothing else needs, */
    UPDATE_BYTES = 16 * 1024, /* and one more for so much content */
    KEY_UPDATE = 24,          /* RFC 8446, 4 */
    UPDATE_REQUESTED = 1,     /* 4.6.3, the one byte behind the head of the message */
    MESSAGE_HEAD = 4,
};

/* The stream has failed for good; sends OpenSSL's alert if possible. */
MK_COLD static mk_err fail(struct mk_tls *t)
{
    if (t->call)
        mk_tls_verdict_find(t);
    if (t->broken) {
        mk_tls_out_drop();
        return t->broken;
    }
    (void)!mk_tls_out_flush(t, false);
    if (!t->broken)
        t->broken = -EPROTO;
    return t->broken;
}

/* ---- The end ---- */

/* Sends close_notify, which proves that the stream was not truncated. False: no room for it. */
static bool say_end(struct mk_tls *t)
{
    if (mk_tls_mute(t) || !t->done)
        return true;
    if (!t->shut) {
        ERR_clear_error();
        int r = SSL_shutdown(t->ssl);
        if (r < 0 && SSL_get_error(t->ssl, r) == SSL_ERROR_WANT_WRITE)
            return false;
        t->shut = true;
    }
    return mk_tls_out_flush(t, false) != -EAGAIN;
}

static void tls_shutdown(struct mk_stream *s)
{
    s->shutdown_pending = !say_end(s->tls);
    if (!s->shutdown_pending)
        (void)shutdown(s->fd, SHUT_WR);
}

/* ---- In ---- */

static void begin(struct mk_stream *s, struct mk_tls *t)
{
    ERR_clear_error();
    t->stream = s; /* its owner may have moved it */
    t->spent = false;
    t->pulled = 0;
    s->holds = false;
}

static ssize_t read_nothing(struct mk_stream *s, struct mk_tls *t)
{
    switch (SSL_get_error(t->ssl, 0)) {
    case SSL_ERROR_WANT_READ:
        s->holds = t->spent;
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        if (!t->call || !t->ended)
            return 0; /* a truncated request is noticed by its length; a response may end with the connection
                       */
        t->broken = -ECONNRESET;
        return fail(t);
    default:
        return fail(t);
    }
}

static ssize_t read_records(struct mk_stream *s, struct mk_tls *t, char *room, size_t cap)
{
    size_t got = 0, n;
    unsigned records = 0;
    while (got < cap) {
        if (SSL_read_ex(t->ssl, room + got, cap - got, &n) <= 0) {
            if (!got)
                return read_nothing(s, t);
            s->holds = SSL_get_error(t->ssl, 0) != SSL_ERROR_WANT_READ; /* the next read reports the end */
            break;
        }
        got += n;
        t->heard += n;
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

/* Protocol messages go out with the next content, or alone if none follows at once. Not while the caller
 * waits for room: it would not learn of the outcome. */
static mk_err send_own(struct mk_tls *t, bool at_once)
{
    if (!at_once || t->owed)
        return mk_tls_out_keep(t);
    mk_err e = mk_tls_out_flush(t, false);
    return e == -EAGAIN ? 0 : e;
}

static ssize_t tls_read(struct mk_stream *s, char *room, size_t cap)
{
    struct mk_tls *t = s->tls;
    if (t->broken)
        return t->broken;
    if (s->shutdown_pending)
        tls_shutdown(s);
    begin(s, t);
    ssize_t n = read_records(s, t, room, cap);
    if (t->call)
        (void)SSL_free_buffers(t->ssl); /* a ticket leaves 16 KB behind, until the next write */
    if (n < 0 && n != -EAGAIN)
        return n;
    if (n > 0 && t->spent)
        s->holds = true;
    mk_err e = send_own(t, n < 0);
    return e && n < 0 && t->broken ? e : n;
}

/* ---- Out ---- */

static size_t left_of(const struct mk_tls *t)
{
    return t->left ? t->left->len - t->left->from : 0;
}

static ssize_t encrypt(struct mk_tls *t, const char *p, size_t len)
{
    size_t n;
    if (left_of(t) > SMALL) {
        mk_err e = mk_tls_out_flush(t, false);
        if (e)
            return e;
    }
    ERR_clear_error();
    if (SSL_write_ex(t->ssl, p, len, &n) <= 0 || n != len)
        return fail(t);
    t->owed = len;
    return 0;
}

/* A head, or the last response before the end, goes out with what follows. */
static ssize_t keep_small(struct mk_tls *t)
{
    ssize_t told = (ssize_t)t->owed;
    t->owed = 0;
    mk_err e = mk_tls_out_keep(t);
    return e ? e : told;
}

/* Content counts as written once the socket has taken all of it except the kept rest. */
static ssize_t finish_write(struct mk_tls *t, size_t offered, bool more)
{
    if (more && left_of(t) + t->owed <= SMALL && t->owed <= offered)
        return keep_small(t);
    mk_err e = mk_tls_out_flush(t, more);
    if (e && e != -EAGAIN)
        return e;
    size_t told = mk_min(t->owed - mk_min(t->owed, left_of(t)), offered);
    t->owed -= told;
    return told ? (ssize_t)told : -EAGAIN;
}

static ssize_t tls_write(struct mk_stream *s, mk_str bytes, bool more)
{
    struct mk_tls *t = s->tls;
    if (mk_tls_mute(t))
        return mk_tls_mute(t);
    if (!t->owed) {
        size_t n = mk_min(bytes.len, MK_TLS_PIECE);
        ssize_t e = encrypt(t, bytes.p, n);
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
    if (mk_tls_mute(t))
        return mk_tls_mute(t);
    if (!t->owed) {
        char *room = mk_tls_out_plain();
        ssize_t n = pread(file_fd, room, mk_min(len, MK_TLS_PIECE), (off_t)offset);
        if (n <= 0)
            return n < 0 ? mk_err_last() : 0;
        ssize_t e = encrypt(t, room, (size_t)n);
        if (e)
            return e;
        more = (size_t)n < len;
    }
    return finish_write(t, len, more);
}

/* ---- Where the kernel encrypts ---- */

static ssize_t kernel_write(struct mk_stream *s, mk_str bytes, bool more)
{
    const struct mk_tls *t = s->tls;
    ssize_t n = t->broken ? -1 : send(s->fd, bytes.p, bytes.len, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    return t->broken ? t->broken : n < 0 ? mk_err_last() : n;
}

static ssize_t (*plain_send_file)(struct mk_stream *s, int file_fd, uint64_t offset, size_t len);

void mk_tls_stream_use_send_file(ssize_t (*send_file)(struct mk_stream *s, int file_fd, uint64_t offset,
                                                      size_t len))
{
    plain_send_file = send_file;
}

static ssize_t kernel_send_file(struct mk_stream *s, int file_fd, uint64_t offset, size_t len)
{
    const struct mk_tls *t = s->tls;
    return t->broken ? t->broken : plain_send_file(s, file_fd, offset, len);
}

/* ---- All of it ---- */

void mk_tls_stream_free(struct mk_tls *t)
{
    if (t->call) {
        SSL_set_shutdown(t->ssl, SSL_SENT_SHUTDOWN); /* else OpenSSL takes the session for damaged */
        mk_mem_free(t->call->said);
    }
    SSL_free(t->ssl);
    mk_mem_free(t->left);
    mk_mem_free(t->early);
    mk_mem_free(t->visitor);
    mk_mem_free(t->call);
    mk_mem_free(t);
    ERR_clear_error();
}

static void tls_close(struct mk_stream *s)
{
    struct mk_tls *t = s->tls;
    if (s->fd >= 0) {
        if (!t->left || !t->owed)
            (void)say_end(t);
        (void)close(s->fd);
    }
    s->fd = -1;
    mk_tls_stream_free(t);
    s->tls = NULL;
}

static const struct mk_stream_ops tls_ops = {
    .read = tls_read,
    .write = tls_write,
    .send_file = tls_send_file,
    .shutdown = tls_shutdown,
    .close = tls_close,
};

static const struct mk_stream_ops kernel_ops = {
    .read = tls_read,
    .write = kernel_write,
    .send_file = kernel_send_file,
    .shutdown = tls_shutdown,
    .close = tls_close,
};

/* ---- The beginning ---- */

static mk_err take_early(struct mk_tls *t, mk_str early)
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
    struct mk_tls *t = mk_tls_out_init() ? NULL : mk_mem_zalloc(1, sizeof *t);
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

void mk_tls_stream_start(struct mk_stream *s, struct mk_tls *t)
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
    SSL_CTX *ctx = c ? c->ctx : mk_tls_context_bare();
    struct mk_tls *t = ctx ? mk_tls_stream_new(fd, ctx) : NULL;
    if (!t)
        return -ENOMEM;
    t->domain = domain;
    if (take_early(t, early)) {
        mk_tls_stream_free(t);
        return -ENOMEM;
    }
    SSL_set_accept_state(t->ssl);
    mk_tls_stream_start(s, t);
    return 0;
}

/* Limits KeyUpdates: they cost us more than they cost the peer. */
static void on_message(int is_ours, int version, int type, const void *p, size_t len, SSL *ssl, void *arg)
{
    struct mk_tls *t = arg;
    const uint8_t *message = p;
    (void)version;
    (void)ssl;
    if (is_ours || type != SSL3_RT_HANDSHAKE || len <= MESSAGE_HEAD || *message != KEY_UPDATE)
        return;
    t->updates++;
    bool ours_too = message[MESSAGE_HEAD] == UPDATE_REQUESTED;
    if (t->updates > UPDATES_MAX + t->heard / UPDATE_BYTES || (t->kernel && ours_too)) /* it keeps its keys */
        t->broken = -EPROTO;
}

static void finish(struct mk_stream *s, struct mk_tls *t)
{
    t->done = true;
    t->kernel = BIO_get_ktls_send(SSL_get_wbio(t->ssl)) > 0;
    if (t->kernel)
        s->ops = &kernel_ops;
    SSL_set_msg_callback(t->ssl, on_message);
    SSL_set_msg_callback_arg(t->ssl, t);
    s->holds = !s->dry || SSL_has_pending(t->ssl);
    if (t->call)
        mk_tls_session_on_done(t);
}

static const char *reason(const struct mk_tls *t)
{
    if (t->why)
        return t->why;
    unsigned long e = ERR_peek_last_error();
    const char *text = e ? ERR_reason_error_string(e) : NULL;
    return text ? text : "the peer is gone";
}

/* Sends the last flight, unless it can go with what we say next: in TLS 1.3 only tickets remain. In TLS 1.2
 * the client waits for it. */
static mk_err say_last(struct mk_tls *t)
{
    if (t->call || SSL_version(t->ssl) >= TLS1_3_VERSION)
        return mk_tls_out_keep(t);
    mk_err e = mk_tls_out_flush(t, false);
    return e == -EAGAIN ? 0 : e;
}

/* A server may have said why before it left, which nothing has read if a write met its end first. */
MK_COLD static void look_for_alert(struct mk_tls *t)
{
    char c;
    size_t n;
    t->stream->dry = false;
    begin(t->stream, t);
    (void)SSL_read_ex(t->ssl, &c, 1, &n);
    mk_tls_out_drop();
    mk_tls_verdict_find(t);
}

static mk_err advance(struct mk_stream *s, struct mk_tls *t)
{
    mk_err e = t->left ? mk_tls_out_flush(t, false) : 0; /* a flight that did not fit */
    if (e)
        return e;
    int r = SSL_do_handshake(t->ssl);
    if (r == 1) {
        finish(s, t);
        return say_last(t);
    }
    int wants = SSL_get_error(t->ssl, r);
    if (wants != SSL_ERROR_WANT_READ && wants != SSL_ERROR_WANT_WRITE)
        return fail(t);
    s->holds = t->spent;
    e = mk_tls_out_flush(t, false);
    return e ? e : -EAGAIN;
}

mk_err mk_tls_stream_handshake(struct mk_stream *s, const char **why)
{
    struct mk_tls *t = s->tls;
    begin(s, t);
    mk_err e = mk_tls_mute(t) ? mk_tls_mute(t) : advance(s, t);
    if (!e || e == -EAGAIN)
        return e;
    if (t->call && !t->why)
        look_for_alert(t);
    if (t->call && !t->done)
        mk_tls_session_forget(t);
    *why = reason(t);
    return e;
}
