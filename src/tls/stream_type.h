/* SPDX-License-Identifier: Apache-2.0 */
/* An encrypted stream from inside. */
#ifndef MK_TLS_STREAM_TYPE_H
#define MK_TLS_STREAM_TYPE_H

#include <openssl/ssl.h>

#include "net/tls.h"

/* Ciphertext that the socket has not accepted. */
struct mk_tls_left {
    size_t from, len;
    char bytes[];
};

/* Input read from the socket before the stream was opened. */
struct mk_tls_early {
    size_t from, len;
    char bytes[];
};

struct mk_tls_client;

struct mk_tls {
    SSL *ssl;
    struct mk_stream *stream;
    const char *why; /* we rejected the client; NULL: ask OpenSSL */
    int fd;
    mk_err broken; /* sticky: no more reads or writes */
    const struct mk_tls_domain *domain;
    struct mk_tls_left *left;
    size_t owed; /* bytes encrypted but not yet reported as written: the caller offers the same bytes again */
    struct mk_tls_early *early;
    struct mk_tls_client *client; /* facts of its certificate, once a plugin asked */
    uint64_t heard;               /* bytes that were read of it */
    uint32_t updates;             /* times that it has changed its keys */
    uint32_t pulled;              /* bytes that this call took from the socket */
    bool spent;                   /* this call has taken enough */
    bool challenge;               /* only acme-tls/1 is spoken */
    bool done;                    /* the handshake is over */
    bool shut;                    /* we have sent close_notify */
    bool kernel;                  /* encrypts what we send */
    bool control;                 /* the next record is no content, and the kernel must know */
};

#endif
