/* SPDX-License-Identifier: Apache-2.0 */
/* A run: which certificates are due, obtaining them, and the time of the next run. */
#ifndef ACME_RUN_H
#define ACME_RUN_H

#include "client.h"

struct acme_run {
    const struct acme_job *plan;
    struct acme_client client;
    bool is_open, is_blocked; /* is_blocked: the authority or the account cannot be used now */
    int64_t next;             /* time of the next run */
};

struct acme_run acme_run_begin(const struct acme_job *plan);
/* Frees the client, and reports the time of the next run. */
void acme_run_end(struct acme_run *r);

/* The next run is not later than at this time. */
void acme_run_schedule(struct acme_run *r, int64_t at);
/* Connects to the authority if necessary. Returns false if that is impossible now, and schedules the next attempt. */
bool acme_run_open_client(struct acme_run *r);
/* Returns whether to obtain the certificate now. If not, schedules the time at which it is due. */
bool acme_run_is_due(struct acme_run *r, const struct acme_cert_spec *w);
/* Obtains the certificate. Saves the result, and schedules the renewal, or after a failure the next attempt. */
bool acme_run_obtain(struct acme_run *r, const struct acme_cert_spec *w);

#endif
