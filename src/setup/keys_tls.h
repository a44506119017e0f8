/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing and printing of the TLS keys. */
#ifndef MK_SETUP_KEYS_TLS_H
#define MK_SETUP_KEYS_TLS_H

#include "setup/settings.h"

extern const char *const mk_keys_tls_versions[], *const mk_keys_tls_clients[];

mk_conf_parse_fn mk_keys_tls_parse_certificate, mk_keys_tls_parse_hsts, mk_keys_tls_parse_redirect,
    mk_keys_tls_parse_authority;
mk_conf_show_fn mk_keys_tls_show_certificate, mk_keys_tls_show_hsts, mk_keys_tls_show_redirect,
    mk_keys_tls_show_authority;

/* The keys of struct mk_tls_settings: in [SERVER] with defaults, in [HOST] without. */
#define MK_SETTINGS_TLS_KEYS(AT, DEF)                                                                        \
    {.name = "Certificate",                                                                                  \
     .type = MK_CONF_CUSTOM,                                                                                 \
     AT(site.tls.certificates),                                                                              \
     .flags = MK_CONF_REPEATABLE | MK_CONF_READS,                                                            \
     .syntax = "FILE [KEYFILE [OCSPFILE]]",                                                                  \
     .parse = mk_keys_tls_parse_certificate,                                                                 \
     .show = mk_keys_tls_show_certificate,                                                                   \
     .help = MK_HELP(                                                                                        \
         "The certificate for `Listen ... tls` followed by its intermediate certificates, and its key, "     \
         "which may be in the same file (PEM). Repeat the key for several key types (ECDSA and RSA). "       \
         "An OCSP response (DER) is stapled. Changed files are reloaded automatically.")},                   \
        {.name = "TLSVersion",                                                                               \
         .type = MK_CONF_ENUM,                                                                               \
         AT(site.tls.oldest),                                                                                \
         .choices = mk_keys_tls_versions,                                                                    \
         .default_value = DEF("1.2"),                                                                        \
         .help = MK_HELP("Oldest accepted TLS version.")},                                                   \
        {.name = "TLSCiphers",                                                                               \
         .type = MK_CONF_TEXT,                                                                               \
         AT(site.tls.ciphers),                                                                               \
         .help =                                                                                             \
             MK_HELP("Ciphers for TLS 1.2, in OpenSSL syntax. The default has only ciphers with forward "    \
                     "secrecy and authenticated encryption.")},                                              \
        {.name = "TLSSuites",                                                                                \
         .type = MK_CONF_TEXT,                                                                               \
         AT(site.tls.suites),                                                                                \
         .help = MK_HELP("Cipher suites for TLS 1.3, in OpenSSL syntax.")},                                  \
        {.name = "TLSGroups",                                                                                \
         .type = MK_CONF_TEXT,                                                                               \
         AT(site.tls.groups),                                                                                \
         .help = MK_HELP("Key exchange groups, in OpenSSL syntax: `X25519:P-256`.")},                        \
        {.name = "ClientCertificates",                                                                       \
         .type = MK_CONF_ENUM,                                                                               \
         AT(site.tls.clients),                                                                               \
         .choices = mk_keys_tls_clients,                                                                     \
         .default_value = DEF("off"),                                                                        \
         .help =                                                                                             \
             MK_HELP("Ask clients for a certificate issued by a `ClientAuthority`: `optional` also serves "  \
                     "clients without one, `required` does not.")},                                          \
        {.name = "ClientAuthority",                                                                          \
         .type = MK_CONF_CUSTOM,                                                                             \
         .flags = MK_CONF_READS,                                                                             \
         AT(site.tls.client_authority),                                                                      \
         .syntax = "FILE",                                                                                   \
         .parse = mk_keys_tls_parse_authority,                                                               \
         .show = mk_keys_tls_show_authority,                                                                 \
         .help = MK_HELP("Certificates of the authorities that issue client certificates (PEM).")},          \
        {.name = "HTTP2",                                                                                    \
         .type = MK_CONF_BOOL,                                                                               \
         AT(site.tls.http2),                                                                                 \
         .default_value = DEF("on"),                                                                         \
         .help = MK_HELP("Offer HTTP/2 to clients.")},                                                       \
        {.name = "HSTS",                                                                                     \
         .type = MK_CONF_CUSTOM,                                                                             \
         AT(site.tls.hsts),                                                                                  \
         .syntax = "a time (s, m, h, d), then `includeSubDomains` or `preload` or both, or off",             \
         .parse = mk_keys_tls_parse_hsts,                                                                    \
         .show = mk_keys_tls_show_hsts,                                                                      \
         .default_value = DEF("off"),                                                                        \
         .help = MK_HELP(                                                                                    \
             "Tell browsers, over TLS, to use only TLS for this time (Strict-Transport-Security).")},        \
    {                                                                                                        \
        .name = "RedirectToHTTPS", .type = MK_CONF_CUSTOM, AT(site.tls.redirect),                            \
        .syntax = "on, off or a port", .parse = mk_keys_tls_parse_redirect,                                  \
        .show = mk_keys_tls_show_redirect, .default_value = DEF("off"),                                      \
        .help = MK_HELP(                                                                                     \
            "Redirect plain HTTP requests to the same URL over TLS (308), except for ACME challenges. "      \
            "`on` means port 443, or the first `Listen` with `tls` if there is none on 443."),               \
    }

#endif
