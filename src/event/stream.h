/* SPDX-License-Identifier: Apache-2.0 */
/* A connected byte stream, plain or encrypted, with the same interface. */
#ifndef MK_EVENT_STREAM_H
#define MK_EVENT_STREAM_H

#include "base/err.h"
#include "base/str.h"

struct mk_stream;

/* Counts are bytes; a negative result is an error, and -EAGAIN means "wait for the descriptor". After a
 * partial write, offer the remaining bytes again before any others: an encrypted stream may have encrypted
 * them already. */
struct mk_stream_ops {
    /* Returns 0 if the peer has closed its sending side. */
    ssize_t (*read)(struct mk_stream *s, char *buf, size_t cap);
    /* `more`: more data follows immediately, so a partial packet may wait for it. */
    ssize_t (*write)(struct mk_stream *s, mk_str bytes, bool more);
    /* NULL if the stream cannot send from a file directly. 0: the file ends before `offset`. */
    ssize_t (*send_file)(struct mk_stream *s, int file_fd, uint64_t offset, size_t len);
    /* Free bytes in the socket's send buffer, 0 if unknown. NULL: always unknown. */
    size_t (*room)(const struct mk_stream *s);
    /* Has the peer ended the stream? Consumes no data. NULL: an event reports the end. */
    bool (*check_end)(struct mk_stream *s);
    /* Half-closes: signals the end of our data to the peer. */
    void (*shutdown)(struct mk_stream *s);
    void (*close)(struct mk_stream *s);
};

struct mk_stream {
    const struct mk_stream_ops *ops;
    int fd;
    bool dry;   /* a read found the socket empty, and no event has reported input since */
    bool holds; /* an encrypted stream has buffered input, for which no event will arrive: read again after
                 * other connections have been served */
    bool ended; /* the peer has closed its sending side; its last bytes and EOF may still be unread */
    bool shutdown_pending; /* our shutdown is incomplete: the next read continues it */
    void *tls;             /* state of an encrypted stream; NULL for a plain one */
};

/* Call this when an event has reported input or, with `ended`, EOF. */
static inline void mk_stream_on_input(struct mk_stream *s, bool ended)
{
    s->dry = false;
    s->ended |= ended;
}

/* Is a read worth a system call? */
static inline bool mk_stream_is_readable(const struct mk_stream *s)
{
    return !s->dry || s->holds;
}

/* Reads even if no event has reported input. A short read has emptied the socket: only EOF may follow. */
static inline ssize_t mk_stream_read(struct mk_stream *s, char *buf, size_t cap)
{
    ssize_t n = s->ops->read(s, buf, cap);
    bool is_short = n == -EAGAIN || (n > 0 && (size_t)n < cap && !s->ended);
    if (is_short && !s->holds)
        s->dry = true;
    if (n <= 0 && n != -EAGAIN)
        s->ended = true; /* close_notify may arrive without a FIN, and then no event reports the end */
    return n;
}

/* Has the peer closed its sending side? Detects an end that no event reports (close_notify without a FIN). */
static inline bool mk_stream_check_end(struct mk_stream *s)
{
    if (s->ops->check_end && !s->ended && mk_stream_is_readable(s))
        s->ended = s->ops->check_end(s);
    return s->ended;
}

/* Opens a stream over a plain socket. The stream owns the descriptor. */
void mk_stream_plain_open(struct mk_stream *s, int fd);
/* The send_file operation of a plain socket, also used if the kernel encrypts the stream (kernel TLS). */
ssize_t mk_stream_plain_send_file(struct mk_stream *s, int file_fd, uint64_t offset, size_t len);

#endif
