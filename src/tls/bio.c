/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/bio.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/mem.h"

/* From a comment in <openssl/bio.h>: the controls with which OpenSSL enables kernel TLS on a socket.
 * OpenSSL's own socket BIO executes them: it is pushed below our BIO when the first control arrives. */
enum { SET_KTLS = 72, SET_KTLS_CONTROL = 74, CLEAR_KTLS_CONTROL = 75 };

enum { PULL_MAX = 128 * 1024 }; /* maximum ciphertext per call: records may be empty */

static BIO_METHOD *bio_method;

/* ---- The write buffer ---- */

enum {
    RECORD_MORE = 64,                                            /* record overhead, rounded up */
    ROOM = MK_TLS_WRITE_PLAINTEXT_MAX + 16 * RECORD_MORE + 4096, /* space for the records of one call */
    SMALL = 4096,                                                /* unsent data up to this size is sent with
                                                                    the next data */
    KEPT_MAX = 256 * 1024, /* maximum unsent bytes: if a peer reads nothing, our protocol messages pile up */
};

struct thread_buffers {
    size_t len;
    char sealed[ROOM];
    char plain[MK_TLS_WRITE_PLAINTEXT_MAX];
};

static _Thread_local struct thread_buffers *thread_buffers;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool has_key;

static void create_thread_key(void)
{
    has_key = pthread_key_create(&key, mk_mem_free) == 0;
}

mk_err mk_tls_bio_init_buffers(void)
{
    if (thread_buffers)
        return 0;
    pthread_once(&key_once, create_thread_key);
    thread_buffers = has_key ? mk_mem_alloc(sizeof *thread_buffers) : NULL;
    if (!thread_buffers)
        return -ENOMEM;
    thread_buffers->len = 0;
    if (pthread_setspecific(key, thread_buffers) == 0)
        return 0;
    mk_mem_free(thread_buffers);
    thread_buffers = NULL;
    return -ENOMEM;
}

char *mk_tls_bio_plaintext(void)
{
    return thread_buffers->plain;
}

void mk_tls_bio_discard(void)
{
    thread_buffers->len = 0;
}

/* Writes to the socket without blocking. Returns how many bytes the socket accepted, or an error. */
static ssize_t send_to_socket(struct mk_tls *t, const char *p, size_t len, bool more)
{
    ssize_t n;
    do
        n = send(t->fd, p, len, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    while (n < 0 && errno == EINTR);
    return n >= 0 ? n : errno == EAGAIN ? 0 : mk_err_last();
}

static mk_err set_write_error(struct mk_tls *t, mk_err e)
{
    thread_buffers->len = 0;
    *(t->call ? &t->call->mute : &t->broken) = e;
    return e;
}

static bool has_write_error(const struct mk_tls *t)
{
    return t->call && t->call->mute;
}

/* Appends to the unsent data of the stream. */
static mk_err append_unsent(struct mk_tls *t, const char *p, size_t len)
{
    size_t before = t->left ? t->left->len - t->left->from : 0;
    struct mk_tls_unsent *left = before + len <= KEPT_MAX ? mk_mem_alloc(sizeof *left + before + len) : NULL;
    if (!left)
        return set_write_error(t, -ENOMEM);
    left->from = 0;
    left->len = before + len;
    if (before)
        memcpy(left->bytes, t->left->bytes + t->left->from, before);
    memcpy(left->bytes + before, p, len);
    mk_mem_free(t->left);
    t->left = left;
    thread_buffers->len = 0;
    return 0;
}

mk_err mk_tls_bio_save_unsent(struct mk_tls *t)
{
    if (has_write_error(t))
        return set_write_error(t, t->call->mute);
    return thread_buffers->len ? append_unsent(t, thread_buffers->sealed, thread_buffers->len) : 0;
}

/* Prepends a small amount of unsent data to the next data if there is space. */
static bool prepend_unsent(struct mk_tls *t)
{
    size_t n = t->left->len - t->left->from;
    if (n > SMALL || n > ROOM - thread_buffers->len || !thread_buffers->len)
        return false;
    memmove(thread_buffers->sealed + n, thread_buffers->sealed, thread_buffers->len);
    memcpy(thread_buffers->sealed, t->left->bytes + t->left->from, n);
    thread_buffers->len += n;
    mk_mem_free(t->left);
    t->left = NULL;
    return true;
}

/* Sends the unsent data. 0: all of it was sent. */
static mk_err send_unsent(struct mk_tls *t)
{
    ssize_t n = send_to_socket(t, t->left->bytes + t->left->from, t->left->len - t->left->from,
                               thread_buffers->len > 0);
    if (n < 0)
        return set_write_error(t, (mk_err)n);
    t->left->from += (size_t)n;
    if (t->left->from < t->left->len)
        return -EAGAIN;
    mk_mem_free(t->left);
    t->left = NULL;
    return 0;
}

mk_err mk_tls_bio_flush(struct mk_tls *t, bool more)
{
    if (has_write_error(t))
        return set_write_error(t, t->call->mute);
    mk_err e = t->left && !prepend_unsent(t) ? send_unsent(t) : 0;
    if (e == -EAGAIN) {
        e = mk_tls_bio_save_unsent(t);
        return e ? e : -EAGAIN;
    }
    if (e || !thread_buffers->len)
        return e;
    ssize_t n = send_to_socket(t, thread_buffers->sealed, thread_buffers->len, more);
    if (n < 0)
        return set_write_error(t, (mk_err)n);
    if ((size_t)n == thread_buffers->len) {
        thread_buffers->len = 0;
        return 0;
    }
    e = append_unsent(t, thread_buffers->sealed + n, thread_buffers->len - (size_t)n);
    return e ? e : -EAGAIN;
}

/* Appends records. False: the stream has failed (out of memory, more than KEPT_MAX unsent bytes, or a socket
 * error). */
static bool append_records(struct mk_tls *t, const char *p, size_t len)
{
    while (len > 0) {
        if (thread_buffers->len == ROOM) {
            mk_err e = mk_tls_bio_flush(t, true);
            if (e && e != -EAGAIN)
                return false;
        }
        size_t n = mk_min(len, ROOM - thread_buffers->len);
        memcpy(thread_buffers->sealed + thread_buffers->len, p, n);
        thread_buffers->len += n;
        p += n;
        len -= n;
    }
    return true;
}

/* ---- Input ---- */

static size_t read_early_input(struct mk_tls *t, char *buf, size_t cap)
{
    size_t n = mk_min(cap, t->early->len - t->early->from);
    memcpy(buf, t->early->bytes + t->early->from, n);
    t->early->from += n;
    if (t->early->from == t->early->len) {
        mk_mem_free(t->early);
        t->early = NULL;
    }
    return n;
}

static int retry_read_later(BIO *b)
{
    BIO_set_retry_read(b);
    return 0;
}

static int bio_read(BIO *b, char *buf, size_t cap, size_t *got)
{
    struct mk_tls *t = (struct mk_tls *)(void *)BIO_get_callback_arg(b);
    BIO_clear_retry_flags(b);
    *got = 0;
    if (t->early) {
        *got = read_early_input(t, buf, cap);
        return 1;
    }
    t->spent = t->pulled >= PULL_MAX;
    if (t->stream->dry || t->spent)
        return retry_read_later(b);
    ssize_t n;
    do
        n = recv(t->fd, buf, cap, 0);
    while (n < 0 && errno == EINTR);
    t->stream->dry = n < 0 || ((size_t)n < cap && !t->stream->ended);
    if (n < 0 && errno == EAGAIN)
        return retry_read_later(b);
    if (n < 0)
        t->broken = mk_err_last();
    if (n == 0) {
        t->ended = true;
        BIO_set_flags(b, BIO_FLAGS_IN_EOF);
    }
    if (n <= 0)
        return 0;
    t->pulled += (uint32_t)n;
    *got = (size_t)n;
    return 1;
}

/* ---- Output ---- */

/* Writes a record other than application data; the kernel encrypts it. */
static int write_control_record(BIO *b, struct mk_tls *t, const char *p, size_t len, size_t *taken)
{
    int n = BIO_write(BIO_next(b), p, (int)mk_min(len, INT32_MAX));
    BIO_copy_next_retry(b);
    t->control = n <= 0; /* the socket BIO has cleared its own control flag */
    *taken = n > 0 ? (size_t)n : 0;
    return n > 0 ? 1 : n;
}

static int bio_write(BIO *b, const char *p, size_t len, size_t *taken)
{
    struct mk_tls *t = (struct mk_tls *)(void *)BIO_get_callback_arg(b);
    BIO_clear_retry_flags(b);
    *taken = 0;
    if (t->control)
        return write_control_record(b, t, p, len, taken);
    if (!append_records(t, p, len))
        return 0;
    *taken = len;
    return 1;
}

static BIO *push_socket_bio(BIO *b, struct mk_tls *t)
{
    BIO *plain = BIO_new(BIO_s_socket());
    if (!plain)
        return NULL;
    BIO_set_fd(plain, t->fd, BIO_NOCLOSE);
    BIO_push(b, plain); /* freed together with b */
    return plain;
}

/* From here on, the kernel encrypts: our own ciphertext must be sent first. Returns 0 to continue without
 * kernel TLS. */
static long start_kernel_tls(BIO *b, struct mk_tls *t, void *keys)
{
    if (mk_tls_bio_flush(t, false) || setsockopt(t->fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof "tls") < 0)
        return 0;
    BIO *plain = BIO_next(b) ? BIO_next(b) : push_socket_bio(b, t);
    return plain ? BIO_ctrl(plain, SET_KTLS, 1, keys) : 0;
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
    struct mk_tls *t = (struct mk_tls *)(void *)BIO_get_callback_arg(b);
    switch (cmd) {
    case BIO_CTRL_FLUSH: /* the stream decides when to send */
    case BIO_CTRL_DUP:
        return 1;
    case BIO_CTRL_PUSH:
    case BIO_CTRL_POP:
        return 0;
    case BIO_CTRL_EOF:
        return BIO_test_flags(b, BIO_FLAGS_IN_EOF) != 0;
    case SET_KTLS:
        return num ? start_kernel_tls(b, t, ptr) : 0; /* kernel TLS is only for output: OpenSSL decrypts the
                                                       * input */
    case SET_KTLS_CONTROL:
    case CLEAR_KTLS_CONTROL:
        t->control = cmd == SET_KTLS_CONTROL;
        break;
    default:
        break;
    }
    return BIO_next(b) ? BIO_ctrl(BIO_next(b), cmd, num, ptr) : 0;
}

/* ---- Creation ---- */

static void create_bio_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "monkey");
    if (m && BIO_meth_set_read_ex(m, bio_read) && BIO_meth_set_write_ex(m, bio_write) &&
        BIO_meth_set_ctrl(m, bio_ctrl))
        bio_method = m;
    else
        BIO_meth_free(m);
}

/* Created once per process; NULL: out of memory. */
static const BIO_METHOD *get_bio_method(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, create_bio_method);
    return bio_method;
}

BIO *mk_tls_bio_new(struct mk_tls *t)
{
    BIO *b = get_bio_method() ? BIO_new(bio_method) : NULL;
    if (!b)
        return NULL;
    BIO_set_callback_arg(b, (char *)(void *)t); /* set before OpenSSL calls bio_ctrl() */
    return b;
}

struct mk_tls *mk_tls_bio_stream(const SSL *ssl)
{
    return (struct mk_tls *)(void *)BIO_get_callback_arg(SSL_get_wbio(ssl));
}
