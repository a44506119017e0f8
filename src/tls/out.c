/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/out.h"

#include <pthread.h>
#include <sys/socket.h>

#include "base/mem.h"

enum {
    RECORD_MORE = 64,                              /* what a record of 16 KB has besides, and some */
    ROOM = MK_TLS_PIECE + 16 * RECORD_MORE + 4096, /* for content of a call */
    SMALL = 4096,                                  /* is better sent with what follows */
    KEPT_MAX = 256 * 1024,                         /* protocol responses that the peer does not read */
};

struct rooms {
    size_t len;
    char sealed[ROOM];
    char plain[MK_TLS_PIECE];
};

static _Thread_local struct rooms *rooms;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void make_key(void)
{
    has_key = pthread_key_create(&key, mk_mem_free) == 0;
}

mk_err mk_tls_out_init(void)
{
    if (rooms)
        return 0;
    pthread_once(&once, make_key);
    rooms = has_key ? mk_mem_alloc(sizeof *rooms) : NULL;
    if (!rooms)
        return -ENOMEM;
    rooms->len = 0;
    if (pthread_setspecific(key, rooms) == 0)
        return 0;
    mk_mem_free(rooms);
    rooms = NULL;
    return -ENOMEM;
}

char *mk_tls_out_plain(void)
{
    return rooms->plain;
}

void mk_tls_out_drop(void)
{
    rooms->len = 0;
}

/* How many of them the socket takes. */
static ssize_t give(struct mk_tls *t, const char *p, size_t len, bool more)
{
    ssize_t n;
    do
        n = send(t->fd, p, len, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    while (n < 0 && errno == EINTR);
    return n >= 0 ? n : errno == EAGAIN ? 0 : mk_err_last();
}

static mk_err broken(struct mk_tls *t, mk_err e)
{
    rooms->len = 0;
    *(t->call ? &t->call->mute : &t->broken) = e;
    return e;
}

static bool is_mute(const struct mk_tls *t)
{
    return t->call && t->call->mute;
}

/* Behind what is kept already. */
static mk_err keep(struct mk_tls *t, const char *p, size_t len)
{
    size_t before = t->left ? t->left->len - t->left->from : 0;
    struct mk_tls_left *left = before + len <= KEPT_MAX ? mk_mem_alloc(sizeof *left + before + len) : NULL;
    if (!left)
        return broken(t, -ENOMEM);
    left->from = 0;
    left->len = before + len;
    if (before)
        memcpy(left->bytes, t->left->bytes + t->left->from, before);
    memcpy(left->bytes + before, p, len);
    mk_mem_free(t->left);
    t->left = left;
    rooms->len = 0;
    return 0;
}

mk_err mk_tls_out_keep(struct mk_tls *t)
{
    if (is_mute(t))
        return broken(t, t->call->mute);
    return rooms->len ? keep(t, rooms->sealed, rooms->len) : 0;
}

/* A little that was kept goes with what follows, if there is room before it. */
static bool join(struct mk_tls *t)
{
    size_t n = t->left->len - t->left->from;
    if (n > SMALL || n > ROOM - rooms->len || !rooms->len)
        return false;
    memmove(rooms->sealed + n, rooms->sealed, rooms->len);
    memcpy(rooms->sealed, t->left->bytes + t->left->from, n);
    rooms->len += n;
    mk_mem_free(t->left);
    t->left = NULL;
    return true;
}

/* 0: nothing is kept any more. */
static mk_err push_left(struct mk_tls *t)
{
    ssize_t n = give(t, t->left->bytes + t->left->from, t->left->len - t->left->from, rooms->len > 0);
    if (n < 0)
        return broken(t, (mk_err)n);
    t->left->from += (size_t)n;
    if (t->left->from < t->left->len)
        return -EAGAIN;
    mk_mem_free(t->left);
    t->left = NULL;
    return 0;
}

mk_err mk_tls_out_flush(struct mk_tls *t, bool more)
{
    if (is_mute(t))
        return broken(t, t->call->mute);
    mk_err e = t->left && !join(t) ? push_left(t) : 0;
    if (e == -EAGAIN) {
        e = mk_tls_out_keep(t);
        return e ? e : -EAGAIN;
    }
    if (e || !rooms->len)
        return e;
    ssize_t n = give(t, rooms->sealed, rooms->len, more);
    if (n < 0)
        return broken(t, (mk_err)n);
    if ((size_t)n == rooms->len) {
        rooms->len = 0;
        return 0;
    }
    e = keep(t, rooms->sealed + n, rooms->len - (size_t)n);
    return e ? e : -EAGAIN;
}

bool mk_tls_out_add(struct mk_tls *t, const char *p, size_t len)
{
    while (len > 0) {
        if (rooms->len == ROOM) {
            mk_err e = mk_tls_out_flush(t, true);
            if (e && e != -EAGAIN)
                return false;
        }
        size_t n = mk_min(len, ROOM - rooms->len);
        memcpy(rooms->sealed + rooms->len, p, n);
        rooms->len += n;
        p += n;
        len -= n;
    }
    return true;
}
