/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/write_buffer.h"

#include <pthread.h>
#include <sys/socket.h>

#include "base/mem.h"

enum {
    RECORD_MORE = 64,                                            /* record overhead, rounded up */
    ROOM = MK_TLS_WRITE_PLAINTEXT_MAX + 16 * RECORD_MORE + 4096, /* for the records of one call */
    SMALL = 4096,                                                /* kept rests up to this size are sent with
                                                                    the next data */
    KEPT_MAX = 256 * 1024, /* protocol messages that the peer does not read */
};

struct thread_buffers {
    size_t len;
    char sealed[ROOM];
    char plain[MK_TLS_WRITE_PLAINTEXT_MAX];
};

static _Thread_local struct thread_buffers *thread_buffers;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void create_thread_key(void)
{
    has_key = pthread_key_create(&key, mk_mem_free) == 0;
}

mk_err mk_tls_write_buffer_init(void)
{
    if (thread_buffers)
        return 0;
    pthread_once(&once, create_thread_key);
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

char *mk_tls_write_buffer_plaintext(void)
{
    return thread_buffers->plain;
}

void mk_tls_write_buffer_discard(void)
{
    thread_buffers->len = 0;
}

/* Returns how many bytes the socket accepts. */
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

/* Appends to data already kept. */
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

mk_err mk_tls_write_buffer_save_unsent(struct mk_tls *t)
{
    if (has_write_error(t))
        return set_write_error(t, t->call->mute);
    return thread_buffers->len ? append_unsent(t, thread_buffers->sealed, thread_buffers->len) : 0;
}

/* Prepends a small kept rest to the next data if there is space. */
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

/* Sends kept data. 0: nothing is left to send. */
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

mk_err mk_tls_write_buffer_flush(struct mk_tls *t, bool more)
{
    if (has_write_error(t))
        return set_write_error(t, t->call->mute);
    mk_err e = t->left && !prepend_unsent(t) ? send_unsent(t) : 0;
    if (e == -EAGAIN) {
        e = mk_tls_write_buffer_save_unsent(t);
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

bool mk_tls_write_buffer_append_records(struct mk_tls *t, const char *p, size_t len)
{
    while (len > 0) {
        if (thread_buffers->len == ROOM) {
            mk_err e = mk_tls_write_buffer_flush(t, true);
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
