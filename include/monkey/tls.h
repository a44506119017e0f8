/* SPDX-License-Identifier: Apache-2.0 */
/* Encrypted connections as plugins see them, and certificates that plugins bring. */
#ifndef MONKEY_TLS_H
#define MONKEY_TLS_H

#include <monkey/str.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_config;
struct mk_vhost;
struct mk_request;

/** What was agreed upon for an encrypted connection. Texts live as long as the request; what is not known is
 * absent. */
struct mk_tls_info {
    mk_str version;     /**< "TLSv1.3" */
    mk_str cipher;      /**< in the words of OpenSSL: "TLS_AES_128_GCM_SHA256" */
    mk_str protocol;    /**< by ALPN: "h2", "http/1.1"; absent if the client did not ask */
    mk_str server_name; /**< that the client asked for (SNI, RFC 6066); absent if it named none */
    bool resumed;       /**< continued from an earlier connection, by a ticket */
    /** Of the client's certificate; absent unless the client presented one issued by ClientAuthority. */
    mk_str client_subject;     /**< RFC 2253: "CN=name,O=example" */
    mk_str client_issuer;      /**< of its issuer */
    mk_str client_serial;      /**< hexadecimal */
    mk_str client_fingerprint; /**< SHA-256, hexadecimal */
    int64_t client_expires;    /**< seconds since 1970; 0 without a certificate */
};

/** Does the client use TLS? Then `out`, which may be NULL, is filled in. Where a trusted proxy has ended TLS and
 * told so (`RealScheme` of plugin security), and its own connection has no TLS, all members are absent. */
MK_API bool mk_request_tls(const struct mk_request *r, struct mk_tls_info *out);

/** The client's certificate itself, as DER (RFC 5280); absent where client_subject is. Lives as long as the
 * request. */
MK_API mk_str mk_request_client_certificate(const struct mk_request *r);

/** Does any Listen of this configuration use TLS? Available from load() on. */
MK_API bool mk_config_has_tls(const struct mk_config *c);

/** Only in host(): does the configuration name a Certificate for this very host? */
MK_API bool mk_config_has_certificate(const struct mk_config *c);

/**
 * Only in host(): one more certificate for this host, PEM files that need not exist yet; NULL as `key`: it is
 * in the same file. Once both exist and are valid, the server uses them instead of those inherited from
 * [SERVER]. It checks them every few seconds and reloads the configuration when they change. Until then, and
 * when they are invalid (a warning says why), the host has no certificate of its own. Write them under other
 * names and rename them, the certificate last. The master reads them with its rights. Paths are absolute;
 * they are copied.
 */
MK_API void mk_config_add_certificate(struct mk_config *c, const char *certificate, const char *key);

/**
 * The folder for answers to tls-alpn-01 challenges (RFC 8737), for all hosts, including those without a
 * certificate: a client that asks for the protocol `acme-tls/1` and a NAME gets the certificate and key in
 * NAME.pem. Workers read these files on demand. The sandbox permits it, but their user must have access to
 * the folder. The path is absolute; it is copied. A configuration can have one such folder; a second one is
 * an error.
 */
MK_API void mk_config_tls_challenges(struct mk_config *c, const char *folder);

/** The certificates that a host shows. */
struct mk_vhost_certificate {
    int64_t begins, expires; /**< all of them are valid between: seconds since 1970 */
    bool
        is_kept; /**< the files of one could not be used at the last reload, so the host keeps an earlier one */
};
/** False if the host shows none. */
MK_API bool mk_vhost_certificate_get(const struct mk_vhost *h, struct mk_vhost_certificate *out);

#ifdef __cplusplus
}
#endif

#endif
