/* SPDX-License-Identifier: Apache-2.0 */
/* An encrypted stream from inside. */
#ifndef MK_TLS_STREAM_TYPE_H
#define MK_TLS_STREAM_TYPE_H

#include <openssl/ssl.h>

#include "net/tls.h"

/* Ciphertext that the socket has not accepted. */
struct mk_tls_unsent {
    size_t from, len;
    char bytes[];
};

/* Input read from the socket before the stream was opened. */
struct mk_tls_early_input {
    size_t from, len;
    char bytes[];
};

struct mk_tls_client_cert_info;

/* What a connection to a server has besides. */
struct mk_tls_client_conn {
    struct mk_tls_session **session; /* of the caller: the last one */
    uint64_t client;                 /* number of its mk_tls_client */
    mk_err mute;                     /* sticky: no more writes, while its answer may still be there */
    int64_t until;                   /* the certificates that were verified end then: seconds since 1970 */
    char *said;                      /* text of mk_tls.why that was written for it */
    bool resumes;                    /* it offered that session */
    bool asked;                      /* the server wanted to see a certificate */
    char name[];                     /* of the server, as the caller wants it */
};

struct mk_tls {
    SSL *ssl;
    struct mk_stream *stream;
    const char *why; /* it failed; NULL: ask OpenSSL */
    int fd;
    mk_err broken;                      /* sticky: no more reads or writes */
    const struct mk_tls_domain *domain; /* NULL: we are the client */
    struct mk_tls_client_conn *call;    /* NULL: we are the server */
    struct mk_tls_unsent *left;
    size_t owed; /* bytes encrypted but not yet reported as written: the caller offers the same bytes again */
    struct mk_tls_early_input *early;
    struct mk_tls_client_cert_info *visitor; /* facts of the client's certificate, once a plugin asked */
    uint64_t heard;                          /* bytes that were read of the peer */
    uint32_t updates;                        /* times that it has changed its keys */
    uint32_t pulled;                         /* bytes that this call took from the socket */
    bool spent;                              /* this call has taken enough */
    bool challenge;                          /* only acme-tls/1 is spoken */
    bool done;                               /* the handshake is over */
    bool shut;                               /* we have sent close_notify */
    bool ended;   /* the socket has: without close_notify, if OpenSSL still reads */
    bool kernel;  /* encrypts what we send */
    bool control; /* the next record is no content, and the kernel must know */
};

/* No more writes: why. */
static inline mk_err mk_tls_write_error(const struct mk_tls *t)
{
    return t->broken || !t->call ? t->broken : t->call->mute;
}

#endif
