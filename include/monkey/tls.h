/* SPDX-License-Identifier: Apache-2.0 */
/* TLS properties of connections, and certificates supplied by plugins. */
#ifndef MONKEY_TLS_H
#define MONKEY_TLS_H

#include <monkey/addr.h>
#include <monkey/str.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_buf;
struct mk_config;
struct mk_vhost;
struct mk_request;
struct mk_worker;

/** The parameters of a TLS connection. Strings live as long as the request; unknown values are absent. */
struct mk_tls_info {
    mk_str version;     /**< "TLSv1.3" */
    mk_str cipher;      /**< OpenSSL name: "TLS_AES_128_GCM_SHA256" */
    mk_str protocol;    /**< ALPN protocol: "h2", "http/1.1"; absent if the client offered none */
    mk_str server_name; /**< requested by the client (SNI, RFC 6066); absent if it sent none */
    bool resumed;       /**< the session was resumed */
    /** The client certificate; absent unless the client presented one issued by ClientAuthority. */
    mk_str client_subject;     /**< RFC 2253: "CN=name,O=example" */
    mk_str client_issuer;      /**< subject of the issuer */
    mk_str client_serial;      /**< hexadecimal */
    mk_str client_fingerprint; /**< SHA-256, hexadecimal */
    int64_t client_expires;    /**< seconds since the Unix epoch; 0 without a certificate */
    mk_str group;              /**< of the key exchange, OpenSSL name: "x25519", "X25519MLKEM768" */
};

/** Does the client use TLS? If so, `out` is filled in (it may be NULL). All members are absent if a trusted
 * proxy has terminated TLS (`RealScheme` of the plugin `security`) and connects to this server without
 * TLS. */
MK_API bool mk_request_tls_sized(const struct mk_request *request, struct mk_tls_info *out, size_t out_size);
static inline bool mk_request_tls(const struct mk_request *request, struct mk_tls_info *out)
{
    return mk_request_tls_sized(request, out, sizeof *out);
}

/** The client certificate in DER (RFC 5280); absent whenever client_subject is. Lives as long as the
 * request. */
MK_API mk_str mk_request_client_certificate(const struct mk_request *request);

/** Does any Listen of this configuration use TLS? Available from load() on. */
MK_API bool mk_config_has_tls(const struct mk_config *config);

/** Only in host(): does the configuration specify a Certificate for this virtual host itself? */
MK_API bool mk_config_has_certificate(const struct mk_config *config);

/**
 * Only in host(): adds a certificate for this virtual host, as PEM files that need not exist yet. If `key` is
 * NULL, the key is in the same file. Once both exist and are valid, the server uses them instead of those
 * inherited from [SERVER]. It checks them every few seconds, and reloads the configuration when they change.
 * While the files are missing, the virtual host presents its other certificates: those of its own section, or
 * else the inherited ones, or else those of the default host, if any. The same applies while the files are
 * invalid (a warning states the reason), unless the server has loaded valid files before: it then keeps
 * these. To replace the files, write them under other names and rename them, the certificate last. The master
 * reads them with its own privileges, and follows no links. The paths are absolute and are copied.
 *
 * `monkey certificates` also shows the state of the renewal if the certificate is
 * FOLDER/certificates/NAME.pem and the plugin maintains these JSON files with times in seconds since the Unix
 * epoch: FOLDER/renewal/NAME.json (`next`: time of the next renewal) and, after a failure until the next
 * success, FOLDER/failures/NAME.json (`why`, `failures`: their number, `until`: time of the next attempt).
 */
MK_API void mk_config_add_certificate(struct mk_config *config, const char *certificate, const char *key);

/** The certificates of the configuration, as `monkey certificates` lists them. */
struct mk_certificate_list;
/**
 * Only in load(): makes the server maintain the list, which workers read with mk_certificate_list_read(). A
 * child process of the master reads the certificate files after each reload, within seconds after the state
 * of a renewal changes, and once an hour. The metrics `monkey_tls_certificate_...` contain the same data.
 * Returns NULL if there is no list: in libmonkey, in a build without MK_CERTIFICATES, or, after reporting the
 * error, if out of memory.
 */
MK_API struct mk_certificate_list *mk_config_certificate_list(struct mk_config *config);
/** Appends the list: a JSON array with the objects of `monkey certificates --json`, sorted by expiry. Returns
 * false, and appends nothing, if there is no list yet. `list` may be NULL. */
MK_API bool mk_certificate_list_read(const struct mk_certificate_list *list, struct mk_buf *json);

/**
 * Sets the folder of responses to tls-alpn-01 challenges (RFC 8737), for all virtual hosts, including those
 * without a certificate: if a client requests the protocol `acme-tls/1` for a NAME, the server uses the
 * certificate and key in NAME.pem. Workers read these files on demand. The sandbox permits this, but the user
 * of the workers needs access to the folder. The path is absolute and is copied. A configuration can have
 * only one such folder; a second call with another folder is an error.
 */
MK_API void mk_config_tls_challenges(struct mk_config *config, const char *folder);

/** A TLS handshake that waits for a certificate. It belongs to the worker that called request(). */
struct mk_tls_waiter;
/**
 * Only in host(): if a client requests a NAME (SNI, in lower case) that the configured certificates of this
 * virtual host do not cover, the server presents the certificate in FOLDER/NAME.pem, which also contains the
 * chain and the key. Workers read these files on demand, cache them, and notice a replaced file after at most
 * 30 seconds. The sandbox permits this, but the user of the workers needs access to the folder.
 *
 * If there is no such file, or the certificate has expired, the server calls request(). If request() returns
 * 0, the handshake waits until mk_tls_waiter_resume(). If request() returns a negative errno value, the
 * handshake continues with the expired certificate or, if there is none, fails with the alert
 * unrecognized_name. request() must limit the number of waiting handshakes and how long they wait;
 * HandlerTimeout also applies. If the connection ends first, the server calls cancel(), after which the
 * waiter must not be used.
 *
 * `folder` is an absolute path, which is copied; `ctx` must live as long as the configuration. In a build
 * without this feature (MK_ON_DEMAND) or without TLS, the call is a configuration error.
 */
MK_API void
mk_config_tls_on_demand(struct mk_config *config, const char *folder,
                        int (*request)(struct mk_worker *worker, mk_str name, const struct mk_addr *client,
                                       struct mk_tls_waiter *waiter, void *ctx),
                        void (*cancel)(struct mk_worker *worker, struct mk_tls_waiter *waiter, void *ctx),
                        void *ctx);
/** Resumes the handshake, after this function has returned. If `is_issued`, the server presents the
 * certificate that FOLDER/NAME.pem now contains; otherwise it acts as if request() had failed. Do not use the
 * waiter afterwards. */
MK_API void mk_tls_waiter_resume(struct mk_tls_waiter *waiter, bool is_issued);

/** The certificates that a virtual host presents. */
struct mk_vhost_certificate {
    int64_t not_before, not_after; /**< period in which all certificates are valid: seconds since the Unix
                                        epoch */
    bool is_outdated; /**< the last reload could not use new files, and kept an earlier certificate */
};
/** Returns false if the virtual host presents no certificate. */
MK_API bool mk_vhost_certificate_get_sized(const struct mk_vhost *vhost, struct mk_vhost_certificate *out,
                                           size_t out_size);
static inline bool mk_vhost_certificate_get(const struct mk_vhost *vhost, struct mk_vhost_certificate *out)
{
    return mk_vhost_certificate_get_sized(vhost, out, sizeof *out);
}

#ifdef __cplusplus
}
#endif

#endif
