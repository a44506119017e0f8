/* SPDX-License-Identifier: Apache-2.0 */
/* A connected byte stream; who uses it does not see whether it is plain or encrypted. */
#ifndef MK_NET_STREAM_H
#define MK_NET_STREAM_H

#include "base/err.h"
#include "base/str.h"

struct mk_stream;

/* All counts are bytes; a negative answer is an error, -EAGAIN meaning "wait for the descriptor". Bytes that
 * were offered and not taken must be offered again before any others: an encrypted stream may have sealed
 * them already. */
struct mk_stream_ops {
    /* 0: the peer will send no more. */
    ssize_t (*read)(struct mk_stream *s, char *room, size_t cap);
    /* `more`: something follows at once, a half full packet may wait for it. */
    ssize_t (*write)(struct mk_stream *s, mk_str bytes, bool more);
    /* NULL where the stream can't take bytes from a file by itself. 0: the file ends before `offset`. */
    ssize_t (*send_file)(struct mk_stream *s, int file_fd, uint64_t offset, size_t len);
    /* We will send no more; the peer is told so. */
    void (*shutdown)(struct mk_stream *s);
    void (*close)(struct mk_stream *s);
};

struct mk_stream {
    const struct mk_stream_ops *ops;
    int fd;
    bool holds; /* its last answer to a read was short, but there is more: ask again when others had their
                   turn */
    bool dry;   /* an encrypted one has found its socket empty; who hears that more came says so here */
    bool ends;  /* its shutdown waits for the descriptor: goes on with the next read */
    void *tls;  /* what an encrypted one has besides; NULL for a plain one */
};

/* A plain socket. The stream owns the descriptor. */
void mk_stream_open_plain(struct mk_stream *s, int fd);

#endif
