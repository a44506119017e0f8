/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/bio.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "tls/out.h"

/* From a comment in <openssl/bio.h>: the requests with which OpenSSL makes a socket encrypt in the
 * kernel. */
enum { SET_KTLS = 72, SET_KTLS_CONTROL = 74, CLEAR_KTLS_CONTROL = 75 };

enum { PULL_MAX = 128 * 1024 }; /* of ciphertext, in one call: records may hold nothing at all */

static BIO_METHOD *method;
static long (*socket_ctrl)(BIO *b, int cmd, long num, void *ptr);
static int (*socket_write)(BIO *b, const char *p, int len);

/* ---- In ---- */

static size_t take_early(struct mk_tls *t, char *room, size_t cap)
{
    size_t n = mk_min(cap, t->early->len - t->early->from);
    memcpy(room, t->early->bytes + t->early->from, n);
    t->early->from += n;
    if (t->early->from == t->early->len) {
        mk_mem_free(t->early);
        t->early = NULL;
    }
    return n;
}

static int wait_for_more(BIO *b)
{
    BIO_set_retry_read(b);
    return 0;
}

static int on_read(BIO *b, char *room, size_t cap, size_t *got)
{
    struct mk_tls *t = (struct mk_tls *)(void *)BIO_get_callback_arg(b);
    BIO_clear_retry_flags(b);
    *got = 0;
    if (t->early) {
        *got = take_early(t, room, cap);
        return 1;
    }
    t->spent = t->pulled >= PULL_MAX;
    if (t->stream->dry || t->spent)
        return wait_for_more(b);
    ssize_t n;
    do
        n = recv(t->fd, room, cap, 0);
    while (n < 0 && errno == EINTR);
    t->stream->dry = n < 0 || (size_t)n < cap;
    if (n < 0 && errno == EAGAIN)
        return wait_for_more(b);
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

/* ---- Out ---- */

static int on_write(BIO *b, const char *p, size_t len, size_t *taken)
{
    struct mk_tls *t = (struct mk_tls *)(void *)BIO_get_callback_arg(b);
    BIO_clear_retry_flags(b);
    *taken = 0;
    if (t->control) {
        int n = socket_write(b, p, (int)mk_min(len, INT32_MAX));
        t->control = n <= 0; /* its own mark it has taken away by itself */
        *taken = n > 0 ? (size_t)n : 0;
        return n > 0 ? 1 : n;
    }
    if (!mk_tls_out_add(t, p, len))
        return 0;
    *taken = len;
    return 1;
}

/* From here on the kernel encrypts: what we have encrypted must be gone before. 0: we go on with that. */
static long hand_over(BIO *b, struct mk_tls *t, void *keys)
{
    if (mk_tls_out_flush(t, false) || setsockopt(t->fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof "tls") < 0)
        return 0;
    return socket_ctrl(b, SET_KTLS, 1, keys);
}

static long on_ctrl(BIO *b, int cmd, long num, void *ptr)
{
    struct mk_tls *t = (struct mk_tls *)(void *)BIO_get_callback_arg(b);
    if (cmd == BIO_CTRL_FLUSH)
        return 1; /* the stream decides when it is sent */
    if (cmd == SET_KTLS)
        return num ? hand_over(b, t, ptr) : 0; /* OpenSSL decrypts the input */
    if (cmd == SET_KTLS_CONTROL)
        t->control = true;
    if (cmd == CLEAR_KTLS_CONTROL)
        t->control = false;
    return socket_ctrl(b, cmd, num, ptr);
}

/* ---- Making it ---- */

static void make_method(void)
{
    const BIO_METHOD *plain = BIO_s_socket();
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOCKET, "monkey");
    socket_ctrl = BIO_meth_get_ctrl(plain);
    socket_write = BIO_meth_get_write(plain);
    if (m && BIO_meth_set_read_ex(m, on_read) && BIO_meth_set_write_ex(m, on_write) &&
        BIO_meth_set_ctrl(m, on_ctrl) && BIO_meth_set_create(m, BIO_meth_get_create(plain)) &&
        BIO_meth_set_destroy(m, BIO_meth_get_destroy(plain))) /* there is more in it since OpenSSL 3.2 */
        method = m;
    else
        BIO_meth_free(m);
}

const BIO_METHOD *mk_tls_bio_method(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_method);
    return method;
}

BIO *mk_tls_bio_new(struct mk_tls *t)
{
    BIO *b = mk_tls_bio_method() ? BIO_new(method) : NULL;
    if (!b)
        return NULL;
    BIO_set_callback_arg(b, (char *)(void *)t); /* before the first ctrl */
    BIO_set_fd(b, t->fd, BIO_NOCLOSE);
    return b;
}

struct mk_tls *mk_tls_bio_of(const SSL *ssl)
{
    return (struct mk_tls *)(void *)BIO_get_callback_arg(SSL_get_wbio(ssl));
}
