/* SPDX-License-Identifier: Apache-2.0 */
/* A connected byte stream, plain or encrypted; its users need not know which. */
#ifndef MK_NET_STREAM_H
#define MK_NET_STREAM_H

#include "base/err.h"
#include "base/str.h"

struct mk_stream;

/* Counts are bytes; a negative result is an error, and -EAGAIN means "wait for the descriptor". After a
 * partial write, offer the remaining bytes again before any others: an encrypted stream may have sealed
 * them already. */
struct mk_stream_ops {
    /* 0: the peer has closed its sending side. */
    ssize_t (*read)(struct mk_stream *s, char *room, size_t cap);
    /* `more`: more data follows at once, so a half-full packet may wait for it. */
    ssize_t (*write)(struct mk_stream *s, mk_str bytes, bool more);
    /* NULL if the stream cannot send from a file directly. 0: the file ends before `offset`. */
    ssize_t (*send_file)(struct mk_stream *s, int file_fd, uint64_t offset, size_t len);
    /* How many bytes the socket has room for, 0 if that is not known. NULL: it never is. */
    size_t (*room)(const struct mk_stream *s);
    /* Half-closes: tells the peer that we will send no more. */
    void (*shutdown)(struct mk_stream *s);
    void (*close)(struct mk_stream *s);
};

struct mk_stream {
    const struct mk_stream_ops *ops;
    int fd;
    bool holds; /* the last read was short but more is buffered: read again after other connections had their
                   turn */
    bool dry; /* an encrypted stream found its socket empty; the event handler clears this when input arrives
                */
    bool shutdown_pending; /* our shutdown is incomplete: the next read continues it */
    void *tls;             /* state of an encrypted stream; NULL for a plain one */
};

/* A plain socket. The stream owns the descriptor. */
void mk_stream_plain_open(struct mk_stream *s, int fd);
/* Its send_file, for encrypted streams whose socket encrypts. */
ssize_t mk_stream_plain_send_file(struct mk_stream *s, int file_fd, uint64_t offset, size_t len);

#endif
