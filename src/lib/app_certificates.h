/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates that the program passes as strings. */
#ifndef MK_LIB_APP_CERTIFICATES_H
#define MK_LIB_APP_CERTIFICATES_H

#include "base/buf.h"
#include "base/err.h"
#include "event/tls.h"

struct mk_app_certificate;
struct mk_config;

/* The pair in these strings. A NULL `key` means that the key is in `certificate`. */
struct mk_tls_keypair mk_app_certificate_pair(const char *certificate, const char *key);

/* Zeroed: no certificates. */
struct mk_app_certificates {
    struct mk_app_certificate *first;
};

/* Parses and checks the pair, and keeps no copy of the strings. `host`: number of the program's host, from 1;
 * 0: all hosts without their own certificate. A NULL `key` means that the key is in `certificate`. On an
 * error other than -ENOMEM, the last argument receives the reason. */
mk_err mk_app_certificates_add(struct mk_app_certificates *p, unsigned host, const char *certificate,
                               const char *key, struct mk_buf *error) MK_MUST_USE;
/* Assigns the certificates to the host that is being configured. False: out of memory. */
bool mk_app_certificates_use(const struct mk_app_certificates *p, struct mk_config *c,
                             unsigned host) MK_MUST_USE;
/* Call it only after freeing the configuration that uses the certificates. */
void mk_app_certificates_free(struct mk_app_certificates *p);

#endif
