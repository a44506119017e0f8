/* SPDX-License-Identifier: Apache-2.0 */
/* An encrypted stream from inside. */
#ifndef MK_TLS_STREAM_H
#define MK_TLS_STREAM_H

#include <openssl/ssl.h>

#include "net/tls.h"

/* Ciphertext that the socket has not taken. */
struct mk_tls_left {
    size_t from, len;
    char bytes[];
};

/* Input that was read from the socket before the stream was there. */
struct mk_tls_early {
    size_t from, len;
    char bytes[];
};

struct mk_tls_client;

struct mk_tls {
    SSL *ssl;
    struct mk_stream *stream;
    const char *why; /* we have turned the client away; NULL: OpenSSL knows */
    int fd;
    mk_err broken; /* sticky: nothing can be said or heard any more */
    const struct mk_tls_domain *domain;
    struct mk_tls_left *left;
    size_t owed; /* bytes that were encrypted and not told as written yet: the same are offered again */
    struct mk_tls_early *early;
    struct mk_tls_client *client; /* facts of its certificate, once somebody asked */
    uint64_t heard;               /* bytes that were read of it */
    uint32_t updates;             /* times that it has changed its keys */
    uint32_t pulled;              /* bytes that this call took from the socket */
    bool spent;                   /* this call has taken enough */
    bool challenge;               /* nothing but acme-tls/1 is spoken */
    bool done;                    /* the handshake is over */
    bool shut;                    /* we have said that we will send no more */
    bool kernel;                  /* encrypts what we send */
    bool control;                 /* what comes next is no content, the kernel must be told */
};

mk_err mk_tls_stream_open(struct mk_stream *s, int fd, const struct mk_tls_domain *domain, mk_str early);
mk_err mk_tls_stream_handshake(struct mk_stream *s, const char **why);

#endif
