/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the authority when to renew a certificate (ARI, RFC 9773), and remembers its suggestion. */
#ifndef ACME_RENEWAL_H
#define ACME_RENEWAL_H

#include "cert.h"
#include "client.h"

/* What is known about a certificate, from the state folder. */
struct acme_renewal {
    char url[ACME_URL_MAX]; /* the authority's URL for renewal times; "": it has none */
    int64_t start, end;     /* the suggested period; 0: none yet */
    int64_t at;             /* the instant in it at which this server renews; 0: none yet */
    int64_t check;          /* time of the next question */
    int64_t next;           /* the next renewal, whatever decides it; only for `monkey certificates` */
};

/* Loads the renewal state of the certificate with this ID (acme_cert_id()). Returns false if there is none. */
bool acme_renewal_load(struct acme_renewal *r, const struct acme_cert_spec *spec, const char *id);
/* Asks, and saves the response or, after a failure, the time of the next question. `url` is that of the directory;
 * "": the authority has no such service, which is saved as well. */
void acme_renewal_ask(const struct acme_job *job, const struct acme_cert_spec *spec, const char *id,
                      const char *url, int64_t now);

/* Saves the time of the next renewal, if it has changed. */
void acme_renewal_save_next(const struct acme_cert_spec *spec, const char *id, int64_t next);

/* Returns when to renew the certificate: as the authority suggests, or, without a usable suggestion, at `due`. `made` is
 * the time at which the certificate was written. */
int64_t acme_renewal_adjust(const struct acme_renewal *r, const struct acme_validity *life, int64_t made,
                            int64_t now, int64_t due);

#endif
