/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of encryption: what is special about reading and showing them. */
#ifndef MK_SERVER_SETTINGS_TLS_H
#define MK_SERVER_SETTINGS_TLS_H

#include "server/settings.h"

extern const char *const mk_settings_tls_versions[], *const mk_settings_tls_clients[];

mk_conf_parse_fn mk_settings_tls_parse_certificate, mk_settings_tls_parse_hsts,
    mk_settings_tls_parse_redirect, mk_settings_tls_parse_authority;
mk_conf_show_fn mk_settings_tls_show_certificate, mk_settings_tls_show_hsts, mk_settings_tls_show_redirect,
    mk_settings_tls_show_authority;

/* The keys of struct mk_tls_settings, in [SERVER] with defaults and in [HOST] without. */
#define MK_SETTINGS_TLS_KEYS(AT, DEF)                                                                        \
    {.name = "Certificate",                                                                                  \
     .type = MK_CONF_CUSTOM,                                                                                 \
     AT(site.tls.certificates),                                                                              \
     .flags = MK_CONF_REPEATABLE,                                                                            \
     .form = "FILE [KEYFILE [OCSPFILE]]",                                                                    \
     .parse = mk_settings_tls_parse_certificate,                                                             \
     .show = mk_settings_tls_show_certificate,                                                               \
     .help = "The certificate for `Listen ... tls`, followed by those that lead to its authority, and its "  \
             "key, which may be in the same file (PEM). More than one for several kinds of key (ECDSA and "  \
             "RSA). An answer of its authority about it (OCSP, DER) is stapled. All are read again when "    \
             "they change."},                                                                                \
        {.name = "TLSVersion",                                                                               \
         .type = MK_CONF_ENUM,                                                                               \
         AT(site.tls.oldest),                                                                                \
         .choices = mk_settings_tls_versions,                                                                \
         .def = DEF("1.2"),                                                                                  \
         .help = "The oldest version of TLS that is spoken."},                                               \
        {.name = "TLSCiphers",                                                                               \
         .type = MK_CONF_TEXT,                                                                               \
         AT(site.tls.ciphers),                                                                               \
         .help = "Ciphers for TLS 1.2, in the words of OpenSSL. The default holds only those with forward "  \
                 "secrecy and authenticated encryption."},                                                   \
        {.name = "TLSSuites",                                                                                \
         .type = MK_CONF_TEXT,                                                                               \
         AT(site.tls.suites),                                                                                \
         .help = "Cipher suites for TLS 1.3, in the words of OpenSSL."},                                     \
        {.name = "TLSGroups",                                                                                \
         .type = MK_CONF_TEXT,                                                                               \
         AT(site.tls.groups),                                                                                \
         .help = "Groups for the exchange of keys, in the words of OpenSSL: `X25519:P-256`."},               \
        {.name = "ClientCertificates",                                                                       \
         .type = MK_CONF_ENUM,                                                                               \
         AT(site.tls.clients),                                                                               \
         .choices = mk_settings_tls_clients,                                                                 \
         .def = DEF("off"),                                                                                  \
         .help = "Ask clients for a certificate: `optional` serves those without one, too; `required` does " \
                 "not. `ClientAuthority` says who is trusted."},                                             \
        {.name = "ClientAuthority",                                                                          \
         .type = MK_CONF_CUSTOM,                                                                             \
         AT(site.tls.client_authority),                                                                      \
         .form = "FILE",                                                                                     \
         .parse = mk_settings_tls_parse_authority,                                                           \
         .show = mk_settings_tls_show_authority,                                                             \
         .help = "Certificates of those who vouch for clients (PEM)."},                                      \
        {.name = "HTTP2",                                                                                    \
         .type = MK_CONF_BOOL,                                                                               \
         AT(site.tls.http2),                                                                                 \
         .def = DEF("on"),                                                                                   \
         .help = "Speak HTTP/2 with those who ask for it."},                                                 \
        {.name = "HSTS",                                                                                     \
         .type = MK_CONF_CUSTOM,                                                                             \
         AT(site.tls.hsts),                                                                                  \
         .form = "a time (s, m, h, d), then `includeSubDomains` or `preload` or both, or off",               \
         .parse = mk_settings_tls_parse_hsts,                                                                \
         .show = mk_settings_tls_show_hsts,                                                                  \
         .def = DEF("off"),                                                                                  \
         .help = "Tell browsers, over TLS, that for so long they shall come over TLS only "                  \
                 "(Strict-Transport-Security)."},                                                            \
    {                                                                                                        \
        .name = "RedirectToHTTPS", .type = MK_CONF_CUSTOM, AT(site.tls.redirect),                            \
        .form = "on, off or a port", .parse = mk_settings_tls_parse_redirect,                                \
        .show = mk_settings_tls_show_redirect, .def = DEF("off"),                                            \
        .help = "Send plain requests to the same place over TLS (308), but for those of "                    \
                "`/.well-known/acme-challenge/`. `on` means port 443, or, if none of ours listens there, "   \
                "the first that speaks TLS.",                                                                \
    }

#endif
