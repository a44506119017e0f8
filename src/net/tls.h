/* SPDX-License-Identifier: Apache-2.0 */
/* TLS, seen from above. The library that does it is known to one loadable object alone (src/tls), which is
 * opened when a configuration wants TLS: who serves plain HTTP does not carry it. */
#ifndef MK_NET_TLS_H
#define MK_NET_TLS_H

#include "net/stream.h"
#include "net/tls_authority.h"

/* Certificates and rules of one host; shared by all of its connections, read-only once it is made. */
struct mk_tls_context;

/* ---- Keys of session tickets ---- */

enum { MK_TLS_TICKET_KEYS = 4 };

struct mk_tls_ticket_key {
    uint8_t name[16], cipher[32], mac[32];
};

/* Lies in memory that the master and all workers share. The master alone writes: first the key that is to be
 * the next, then `newest`. The one before it is still understood, older ones are not. */
struct mk_tls_tickets {
    struct mk_tls_ticket_key keys[MK_TLS_TICKET_KEYS];
    uint32_t newest; /* counts on; its key is at newest % MK_TLS_TICKET_KEYS; read and written atomically */
};

/* ---- What a context is made of ---- */

enum mk_tls_clients {
    MK_TLS_CLIENTS_OFF, /* no certificate is asked for */
    MK_TLS_CLIENTS_OPTIONAL,
    MK_TLS_CLIENTS_REQUIRED,
};

/* PEM files. */
struct mk_tls_pair {
    const char *certificate; /* and those that lead to its authority */
    const char *key;         /* NULL: in the same file */
    const char *ocsp;        /* an answer of its authority (DER) to be stapled; NULL: none */
    bool brought;            /* by a plugin, from where others than we may write: links are not followed */
};

struct mk_tls_rules {
    const struct mk_tls_pair *pairs; /* one for each kind of key */
    size_t n_pairs;
    unsigned oldest;     /* 12 or 13 */
    const char *ciphers; /* of TLS 1.2, in the words of OpenSSL; NULL: ours */
    const char *suites;  /* of TLS 1.3 */
    const char *groups;  /* for the exchange of keys */
    enum mk_tls_clients clients;
    const char *client_authority; /* PEM file; whoever it vouches for is let in */
    bool h2;                      /* offered besides http/1.1 */
    const char
        *challenges; /* a folder with NAME.pem (certificate and key) for acme-tls/1 (RFC 8737); NULL: none */
    const struct mk_tls_tickets *tickets; /* outlives the context; NULL: none are given */
};

/* What is wrong with a context, or odd about it. */
struct mk_tls_problem {
    const char *file; /* of the rules: where it was found; NULL: in none of them */
    char text[512];
};

/* ---- Connections ---- */

/* Chooses by the name that the client asks for, absent if it names none. NULL: the client is turned away. */
struct mk_tls_domain {
    const struct mk_tls_context *(*choose)(void *ctx, mk_str name);
    void *ctx;
};

/* What was agreed upon; valid as long as the stream. Absent texts are not known. */
struct mk_tls_facts {
    mk_str protocol;    /* by ALPN */
    mk_str server_name; /* that the client asked for */
    mk_str version;     /* "TLSv1.3" */
    mk_str cipher;
    bool resumed;
    bool kernel; /* the kernel encrypts what we send */
    const struct mk_tls_context *context;
    /* Of the client's certificate, if it has shown one that we trust. */
    mk_str client_subject; /* RFC 2253: "CN=name,O=..." */
    mk_str client_issuer;
    mk_str client_serial;      /* hexadecimal */
    mk_str client_fingerprint; /* SHA-256, hexadecimal */
    int64_t client_expires;    /* seconds since 1970 */
};

enum { MK_TLS_ABI = 1 };

/* What the object has. */
struct mk_tls_module {
    unsigned abi; /* MK_TLS_ABI: object and program are of the same build */
    const char *library;
    /* 0, or what is wrong is in *problem. */
    mk_err (*context_new)(const struct mk_tls_rules *rules, struct mk_tls_context **out,
                          struct mk_tls_problem *problem);
    void (*context_free)(struct mk_tls_context *context);
    /* When the first of its certificates ends: seconds since 1970. */
    int64_t (*context_expires)(const struct mk_tls_context *context);
    /* A stream over the descriptor, which is the stream's from now on; `early` was read from it before.
     * -ENOMEM: the descriptor is still the caller's. `domain` outlives it. */
    mk_err (*open)(struct mk_stream *s, int fd, const struct mk_tls_domain *domain, mk_str early);
    /* 0: done. -EAGAIN: wait for the descriptor. Else it has failed, *why says how (static text). */
    mk_err (*handshake)(struct mk_stream *s, const char **why);
    /* After the handshake. */
    void (*facts)(const struct mk_stream *s, struct mk_tls_facts *out);
    const struct mk_tls_authority_ops *authority;
};

/* Opens the object, once; NULL: there is none, and *why (may be NULL) says so. */
const struct mk_tls_module *mk_tls_load(const char **why);

#endif
