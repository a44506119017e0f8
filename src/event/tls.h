/* SPDX-License-Identifier: Apache-2.0 */
/* TLS interface. Only one loadable object (src/tls) links the TLS library; it is loaded only when a
 * configuration uses TLS: a plain HTTP server does not need it. */
#ifndef MK_EVENT_TLS_H
#define MK_EVENT_TLS_H

#include "event/stream.h"
#include "event/tls_authority.h"

/* Certificates and settings of one host: shared by all its connections, read-only once created. */
struct mk_tls_context;

/* ---- Keys of session tickets ---- */

enum { MK_TLS_TICKET_KEYS = 4 };

struct mk_tls_ticket_key {
    uint8_t name[16], cipher[32], mac[32];
};

/* The keys, in memory shared by the master and all workers. Only the master writes: first the next key, then
 * `newest`. The previous key is still accepted, but older keys are not. */
struct mk_tls_tickets {
    struct mk_tls_ticket_key keys[MK_TLS_TICKET_KEYS];
    uint32_t newest; /* counter of keys: the newest key is at newest % MK_TLS_TICKET_KEYS; access it
                        atomically */
};

/* ---- Certificates on demand ---- */

enum mk_tls_waiter_state { MK_TLS_WAITING, MK_TLS_ISSUED, MK_TLS_REFUSED };

/* A handshake that waits for a certificate. The code that changes `state` also resumes the connection. */
struct mk_tls_waiter {
    struct mk_stream *stream; /* of the connection; it does not move while the handshake waits */
    enum mk_tls_waiter_state state;
};

/* A source of certificates for names that clients request. */
struct mk_tls_on_demand {
    const char *folder; /* contains NAME.pem with the certificate, its chain and the key */
    /* Called if there is no certificate for the name (in lower case), or an expired one. 0: the handshake waits until
     * waiter->state changes. Otherwise a negative errno value: the name gets no new certificate. */
    mk_err (*request)(const struct mk_tls_on_demand *source, mk_str name, struct mk_tls_waiter *waiter);
    /* Called if the connection is closed while the handshake waits. */
    void (*cancel)(const struct mk_tls_on_demand *source, struct mk_tls_waiter *waiter);
};

/* ---- Contexts ---- */

enum mk_tls_clients {
    MK_TLS_CLIENTS_OFF, /* request no certificate */
    MK_TLS_CLIENTS_OPTIONAL,
    MK_TLS_CLIENTS_REQUIRED,
};

/* A certificate and its key, in PEM files or in PEM strings. With strings, the file names appear only in
 * messages. */
struct mk_tls_keypair {
    const char *certificate;      /* certificate file, followed by its chain */
    const char *key;              /* key file; NULL: the key is in the certificate file */
    const char *certificate_text; /* the certificate and its chain as PEM; NULL: read the files */
    const char *key_text;         /* the key as PEM; NULL: the key is in certificate_text */
    const char *ocsp;             /* stapled OCSP response (DER) for the certificate; NULL: none */
    bool from_plugin; /* from a plugin, in a folder that other users may write to: do not follow links */
    /* Use the copy of `certificate` that this context has loaded, with its key and OCSP response, instead of
     * reading files or strings. NULL: read them. */
    const struct mk_tls_context *kept_by;
};

struct mk_tls_server_settings {
    const struct mk_tls_keypair *pairs; /* certificates with their keys, one per key type */
    size_t n_pairs;
    /* Also use the certificates of this context whose key type none of the pairs has. NULL: none. */
    const struct mk_tls_context *base;
    unsigned oldest;     /* oldest TLS version: 12 (TLS 1.2) or 13 */
    const char *ciphers; /* cipher list for TLS 1.2 in OpenSSL's syntax; NULL: our default */
    const char *suites;  /* for TLS 1.3 */
    const char *groups;  /* for key exchange */
    enum mk_tls_clients clients;
    const char *client_authority; /* PEM file of CAs; clients with a certificate issued by one of them are
                                     accepted */
    bool h2;                      /* offer h2 in addition to http/1.1 */
    const char
        *challenges; /* folder with NAME.pem (certificate and key) for acme-tls/1 (RFC 8737); NULL: none */
    /* Certificates for names that those in `pairs` do not cover; must outlive all connections. NULL: none. */
    const struct mk_tls_on_demand *on_demand;
    const struct mk_tls_tickets *tickets; /* must outlive the context; NULL: send no tickets */
};

/* An error or a warning about a context. */
struct mk_tls_settings_error {
    const char *file; /* the file of the settings that caused it; NULL: none */
    char text[512];
};

/* ---- Connections ---- */

/* Selects a context by the server name that the client requested (absent: none). NULL: reject the client. */
struct mk_tls_domain {
    const struct mk_tls_context *(*choose)(void *ctx, mk_str name);
    void *ctx;
};

/* The negotiated parameters; valid until the stream is closed. Absent strings are unknown. */
struct mk_tls_conn_info {
    mk_str protocol;    /* by ALPN */
    mk_str server_name; /* the name that the client requested (SNI) */
    mk_str version;     /* "TLSv1.3" */
    mk_str cipher;
    mk_str group; /* of the key exchange, by the name of OpenSSL */
    bool resumed;
    bool kernel; /* the kernel encrypts our output */
    const struct mk_tls_context *context;
    /* From the certificate of the client, if the client presented a trusted one. */
    mk_str client_subject; /* RFC 2253: "CN=name,O=..." */
    mk_str client_issuer;
    mk_str client_serial;      /* hexadecimal */
    mk_str client_fingerprint; /* SHA-256, hexadecimal */
    mk_str client_certificate; /* DER */
    int64_t client_expires;    /* seconds since 1970 */
};

/* ---- As a client ---- */

struct mk_tls_client;  /* TLS client settings for the servers of one upstream, shared by all its
                        * connections */
struct mk_tls_session; /* a session to resume */

struct mk_tls_client_settings {
    const char *authority;   /* PEM file of trusted CAs; NULL: the CAs of the system */
    const char *certificate; /* PEM file of our certificate, followed by its chain; NULL: none */
    const char *key;         /* PEM file; NULL: the key is in the certificate file */
    bool verifies;           /* verify the certificate and name of the server */
};

/* ---- Inventory ---- */

struct mk_stat_registry;

/* A certificate of the configuration, for the list of `monkey certificates`. Of entries with the same files, the list
 * shows one. */
struct mk_tls_inventory_entry {
    struct mk_tls_keypair pair;
    const char *written_at; /* file:line of its key or host */
    const mk_str *hosts;    /* names of the host, for a certificate that cannot be read */
    size_t n_hosts;
};

struct mk_tls_inventory_settings {
    bool json;
    bool has_days;     /* `days` replaces the default */
    uint64_t days;     /* a certificate that expires within this many days is a problem */
    bool is_array;     /* write only the array of certificates */
    bool omits_files;  /* of keys, OCSP responses and the configuration */
    size_t max_len;    /* omit the last certificates of an array that would be longer; 0: no limit */
    size_t *n_omitted; /* receives their number, if there are any */
    /* Also set the gauges of this table, from inventory_table(); 0: none. */
    struct mk_stat_registry *statistics;
    unsigned table;
};

enum { MK_TLS_ABI = 11 };

/* The functions of the loaded object. */
struct mk_tls_module {
    unsigned abi;       /* MK_TLS_ABI when the object was built; the program rejects any other number */
    const char *vendor; /* the TLS library and its version */
    /* Returns 0, or a negative errno value, which *problem explains. */
    mk_err (*context_new)(const struct mk_tls_server_settings *rules, struct mk_tls_context **out,
                          struct mk_tls_settings_error *problem);
    void (*context_free)(struct mk_tls_context *context);
    /* Was the certificate of that file loaded into the context? */
    bool (*context_has)(const struct mk_tls_context *context, const char *certificate);
    /* Start and end of the period in which all its certificates are valid: seconds since 1970; 0: no
     * certificate. */
    int64_t (*context_begins)(const struct mk_tls_context *context);
    int64_t (*context_expires)(const struct mk_tls_context *context);
    /* Opens a stream that takes ownership of the descriptor; `early`: data already read from the descriptor.
     * -ENOMEM: the caller keeps the descriptor. `domain` must outlive the stream. */
    mk_err (*open)(struct mk_stream *s, int fd, const struct mk_tls_domain *domain, mk_str early);
    /* 0: done. -EAGAIN: wait for the descriptor. -EINPROGRESS: wait for a certificate (mk_tls_waiter). Otherwise the handshake has failed for the reason in *error,
     * which is valid as long as the stream. A server may reject our certificate after the handshake: a client
     * may therefore call this again after a failed read or write to get the reason. */
    mk_err (*handshake)(struct mk_stream *s, const char **error);
    /* Returns the properties of the connection. Call it only after the handshake. */
    void (*facts)(const struct mk_stream *s, struct mk_tls_conn_info *out);
    const struct mk_tls_local_ca_ops *authority;
    /* Sets the function that sends from a file if the kernel encrypts; libmonkey sets one that blocks
     * SIGPIPE. The loader calls this once, before all other functions. */
    void (*use_send_file)(ssize_t (*send_file)(struct mk_stream *s, int file_fd, uint64_t offset,
                                               size_t len));
    /* Returns 0, or a negative errno value, which *problem explains. */
    mk_err (*client_new)(const struct mk_tls_client_settings *rules, struct mk_tls_client **out,
                         struct mk_tls_settings_error *problem);
    void (*client_free)(struct mk_tls_client *client);
    /* Opens a client stream, which takes ownership of the descriptor. `name`: sent as SNI and verified; an
     * address is verified as an address, and not sent. *session: NULL, or the last session: it is resumed if
     * it belongs to this client and name, and each new ticket replaces it. `session` must outlive the stream,
     * and the stream may outlive the client. `http2`: ALPN offers h2 in place of http/1.1. -ENOMEM: the caller
     * keeps the descriptor.
     *
     * After a write has failed, reading still works: the server may have responded before it closed. If the
     * connection ends without the server's close_notify, reads return -ECONNRESET, never 0: a response that
     * ends with the connection may be truncated. Our last handshake flight is sent with the first write, or
     * by a read that finds no data. */
    mk_err (*connect)(struct mk_stream *s, int fd, struct mk_tls_client *client, const char *name,
                      struct mk_tls_session **session, bool http2);
    void (*session_free)(struct mk_tls_session *session);
    /* Reads the certificates, and writes the list, sorted by expiry. *has_problem: one of them expires soon, is
     * unusable, or could not be renewed. -ENOSYS: this build has no inventory (MK_CERTIFICATES). */
    mk_err (*inventory)(const struct mk_tls_inventory_entry *entries, size_t n,
                        const struct mk_tls_inventory_settings *settings, struct mk_buf *out,
                        bool *has_problem);
    /* Registers the table of statistics that inventory() fills. Call it while a configuration is loaded. */
    unsigned (*inventory_table)(struct mk_stat_registry *registry);
};

/* Loads the object once; NULL: unavailable, with the reason in *error (may be NULL). */
const struct mk_tls_module *mk_tls_load(const char **error);

#endif
