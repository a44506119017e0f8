/* SPDX-License-Identifier: Apache-2.0 */
/* The values of [ACME] and [ACME_HOST], checked. */
#ifndef ACME_SETTINGS_H
#define ACME_SETTINGS_H

#include <monkey/plugin.h>

#include "allow_list.h"

#define ACME_HTTP_FOLDER "http-01"     /* subfolder of the state folder, with a file for each token */
#define ACME_ALPN_FOLDER "tls-alpn-01" /* subfolder with NAME.pem for each name */
#define ACME_DNS_FOLDER  "dns-01"      /* subfolder with the DNS records to remove */
#define ACME_ON_DEMAND_FOLDER                                                                                \
    "on-demand" /* subfolder like the state folder itself, for certificates on demand */

enum { ACME_HOOK_WORDS = 16, ACME_HOOK_ENV = 64, ACME_HOOK_ENV_BYTES = 16 * 1024 };

enum acme_challenge { ACME_CHALLENGE_SERVER, ACME_CHALLENGE_HTTP, ACME_CHALLENGE_ALPN, ACME_CHALLENGE_DNS };
enum acme_key { ACME_KEY_SERVER, ACME_KEY_ECDSA, ACME_KEY_RSA };

extern const char *const acme_challenge_words[], *const acme_key_words[];

struct mk_upstream;

/* [ACME] */
struct acme_settings {
    mk_str directory, state, authority, profile;
    struct mk_conf_words contact;
    mk_str account_id, account_file, account_key; /* ExternalAccount; the key is the content of the file */
    struct mk_conf_words hook; /* DNSHook: the program, or the name of a bundled one, and its arguments */
    mk_str hook_env_file, *hook_env; /* DNSHookEnvironment; hook_env has its lines, NAME=VALUE */
    size_t n_hook_env;
    uint64_t hook_timeout_ms, propagation_ms;
    bool agreed;
    unsigned challenge, key; /* enum acme_challenge and enum acme_key, each minus 1 */
    unsigned renew_after;    /* percent */
    uint64_t retry_ms;
    mk_str endpoint; /* AllowEndpoint; absent: none */
    struct mk_upstream *endpoint_upstream;
    mk_str endpoint_host, endpoint_target;
    mk_str allow_file; /* AllowFile; absent: none */
    struct acme_allow_list allow_list;
    uint64_t on_demand_interval_ms,
        on_demand_burst;       /* OnDemandRate: one every interval, and up to `burst` at once */
    uint32_t max_certificates; /* on demand */
};

/* [ACME_HOST] */
struct acme_host {
    bool on, on_demand;
    struct mk_conf_words names;
    enum acme_challenge challenge;
    enum acme_key key;
    mk_str profile;
};

/* A certificate to obtain. */
struct acme_cert_spec {
    struct acme_cert_spec *next;
    mk_str file;   /* base name of its files: the first name, with `_wildcard.` for `*.` */
    mk_str *names; /* lower case */
    size_t n;
    const char *challenge, *key;
    mk_str profile; /* absent: the authority's default */
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
/* Does the host get certificates for names that clients request? Call this only in host(). */
bool acme_settings_has_on_demand(struct mk_config *config);
/* How to obtain certificates for the host, without names. NULL: out of memory. */
struct acme_cert_spec *acme_settings_cert_options(struct mk_config *config, const struct acme_settings *s);
/* Returns the certificate that the host needs; NULL after an error, which was reported, or if all certificates of the host
 * are obtained on demand. */
struct acme_cert_spec *acme_settings_vhost_cert(struct mk_config *config, const struct acme_settings *s,
                                                const struct mk_vhost *host);

#endif
