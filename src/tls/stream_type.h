/* SPDX-License-Identifier: Apache-2.0 */
/* TLS stream internals. */
#ifndef MK_TLS_STREAM_TYPE_H
#define MK_TLS_STREAM_TYPE_H

#include <openssl/ssl.h>

#include "event/tls.h"

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
struct mk_tls_demand;

/* Additional state of a connection to a server. */
struct mk_tls_client_conn {
    struct mk_tls_session **session; /* the caller's last session */
    uint64_t client;                 /* number of the mk_tls_client of the stream */
    mk_err mute;                     /* sticky: writing failed, but the response may still arrive */
    int64_t until;                   /* expiry of the verified certificates: seconds since 1970 */
    char *reason_text;               /* allocated text of mk_tls.why */
    bool resumes;                    /* *session was offered for resumption */
    bool client_cert_requested;      /* the server requested a certificate */
    char name[];                     /* name of the server as given by the caller */
};

struct mk_tls {
    SSL *ssl;
    struct mk_stream *stream;
    const char *why; /* reason for the failure; NULL: ask OpenSSL */
    int fd;
    mk_err broken;                      /* sticky: no more reads or writes */
    const struct mk_tls_domain *domain; /* NULL: we are the client */
    struct mk_tls_client_conn *call;    /* NULL: we are the server */
    struct mk_tls_unsent *left;
    size_t owed; /* bytes encrypted but not reported as written: the caller offers them again */
    struct mk_tls_early_input *early;
    struct mk_tls_demand *demand; /* the handshake waits for a certificate; NULL: it does not */
    struct mk_tls_client_cert_info *client_cert; /* information on the client certificate, once a plugin has
                                                requested it */
    uint64_t n_received;                         /* bytes received */
    uint32_t updates;                            /* key updates received from the peer */
    uint32_t pulled;                             /* bytes read from the socket during the current call */
    bool spent;                                  /* the current call must not read more from the socket */
    bool challenge;                              /* the client offers only acme-tls/1 */
    bool done;                                   /* the handshake is complete */
    bool shut;                                   /* close_notify was sent */
    bool ended;                                  /* the socket is at EOF; close_notify is missing if OpenSSL
                                                  * tries to read more */
    bool kernel;                                 /* the kernel encrypts our output */
    bool control; /* the next record is not application data: tell the kernel its type */
};

/* The error that all later writes return. */
static inline mk_err mk_tls_write_error(const struct mk_tls *t)
{
    return t->broken || !t->call ? t->broken : t->call->mute;
}

#endif
