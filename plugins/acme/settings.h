/* SPDX-License-Identifier: Apache-2.0 */
/* The values of [ACME] and [ACME_HOST], checked. */
#ifndef ACME_SETTINGS_H
#define ACME_SETTINGS_H

#include <monkey/plugin.h>

#define ACME_HTTP_FOLDER "http-01"     /* subfolder of the state folder, with a file for each token */
#define ACME_ALPN_FOLDER "tls-alpn-01" /* subfolder with NAME.pem for each name */

enum acme_challenge { ACME_CHALLENGE_SERVER, ACME_CHALLENGE_HTTP, ACME_CHALLENGE_ALPN };
enum acme_key { ACME_KEY_SERVER, ACME_KEY_ECDSA, ACME_KEY_RSA };

extern const char *const acme_challenge_words[], *const acme_key_words[];

/* [ACME] */
struct acme_settings {
    mk_str directory, state, authority;
    struct mk_conf_words contact;
    mk_str account_id, account_file, account_key; /* ExternalAccount; the key is the content of the file */
    bool agreed;
    unsigned challenge, key; /* enum acme_challenge and enum acme_key, each minus 1 */
    unsigned renew_after;    /* percent */
    uint64_t retry_ms;
};

/* [ACME_HOST] */
struct acme_host {
    bool on;
    struct mk_conf_words names;
    enum acme_challenge challenge;
    enum acme_key key;
};

/* A certificate to obtain. */
struct acme_cert_spec {
    struct acme_cert_spec *next;
    mk_str *names; /* lower case */
    size_t n;
    const char *challenge, *key;
};

extern const struct mk_conf_table acme_table, acme_host_table;

/* Loads [ACME] and reports errors. Returns NULL if there is no such section or memory runs out. */
struct acme_settings *acme_settings_load(struct mk_config *config);
/* Checks, for the first host that needs a certificate, that the configuration is complete. Reports missing
 * keys. `s` may be NULL. */
void acme_settings_check(struct mk_config *config, const struct acme_settings *s);

/* Returns whether the host needs a certificate: it does not if it has no name, or if it has a `Certificate`.
 * Call this only in host(). */
bool acme_settings_needs_cert(struct mk_config *config, const struct mk_vhost *host);
/* Returns the certificate that the host needs; NULL after an error, which was reported. */
struct acme_cert_spec *acme_settings_vhost_cert(struct mk_config *config, const struct acme_settings *s,
                                                const struct mk_vhost *host);

#endif
