/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/h1_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include "os/fd.h"
#include "proto/h1_state.h"

enum {
    LENGTH_MIN = 64 * 1024,  /* of content: less is copied in one piece */
    PIECE = MK_OUTQ_SCRATCH, /* what the client does not take must fit */
    PIPE_SIZE = 256 * 1024,  /* a pipe has a place for each page; packets do not fill theirs */
};

static void close_pipe(struct mk_service *s)
{
    mk_fd_close(&s->pipe[0]);
    mk_fd_close(&s->pipe[1]);
}

/* Without descriptors, content is copied. */
static bool open_pipe(struct mk_service *s)
{
    if (s->pipe[0] >= 0)
        return true;
    if (pipe2(s->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
        s->pipe[0] = s->pipe[1] = -1;
        return false;
    }
    (void)fcntl(s->pipe[1], F_SETPIPE_SZ, PIPE_SIZE); /* if the user has no more, less goes through at once */
    return true;
}

bool mk_h1_pipe_is_fit(const struct mk_h1 *h)
{
    const struct mk_content *content = &h->d.x->response.content;
    return h->delimiter == MK_H1_BY_LENGTH && content->length >= LENGTH_MIN &&
           content->length != MK_CONTENT_UNKNOWN && h->d.conn->stream.ops->from_pipe &&
           open_pipe(h->d.conn->service);
}

static enum mk_h1_progress break_off(struct mk_h1 *h, enum mk_ending ending)
{
    close_pipe(h->d.conn->service); /* what is in it belongs to no other */
    h->d.ending = ending;
    return MK_H1_BROKEN;
}

/* The client's socket is full: the scratch takes the n bytes that are left. */
static enum mk_h1_progress take_rest(struct mk_h1 *h, size_t n)
{
    struct mk_service *s = h->d.conn->service;
    while (n) {
        ssize_t got = read(s->pipe[0], s->out.p + s->out.len, n);
        if (got <= 0)
            return break_off(h, MK_ENDING_ABORTED);
        s->out.len += (size_t)got;
        n -= (size_t)got;
    }
    return MK_H1_WAITS_ROOM;
}

static enum mk_h1_progress send_on(struct mk_h1 *h, size_t n)
{
    struct mk_conn *c = h->d.conn;
    mk_driver_count_sent(&h->d, n);
    while (n) {
        ssize_t sent = c->stream.ops->from_pipe(&c->stream, c->service->pipe[0], n);
        if (sent == -EINTR)
            continue;
        if (sent == -EAGAIN)
            return take_rest(h, n);
        if (sent <= 0)
            return break_off(h, MK_ENDING_GONE);
        n -= (size_t)sent;
        c->progress += (uint64_t)sent;
        c->service->counters->sent += (uint64_t)sent;
    }
    return MK_H1_COMPLETE;
}

enum mk_h1_progress mk_h1_pipe_send(struct mk_h1 *h)
{
    size_t n = 0;
    switch (mk_driver_pull_to_pipe(&h->d, h->d.conn->service->pipe[1], PIECE, &n)) {
    case MK_PULL_DATA:
        return send_on(h, n);
    case MK_PULL_END:
        mk_driver_close_local(&h->d);
        return MK_H1_COMPLETE;
    case MK_PULL_WAITS:
        return MK_H1_WAITS_CONTENT;
    case MK_PULL_AGAIN:
        return MK_H1_COMPLETE;
    case MK_PULL_FAILED:
        break;
    }
    return break_off(h, mk_driver_fail(&h->d));
}
