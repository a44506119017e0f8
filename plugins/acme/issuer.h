/* SPDX-License-Identifier: Apache-2.0 */
/* Obtains certificates that clients request, in worker 0: asks the allow endpoint, and then starts the program that
 * obtains them, each as often as the limits permit. */
#ifndef ACME_ISSUER_H
#define ACME_ISSUER_H

#include "demand_stats.h"
#include "helper_run.h"

enum acme_message_kind { ACME_MESSAGE_REQUEST = 1, ACME_MESSAGE_ISSUED, ACME_MESSAGE_REFUSED };

/* A message between workers. The name follows it. */
struct acme_message {
    uint8_t kind;           /* enum acme_message_kind */
    uint16_t from;          /* index of the worker that sends a request */
    uint32_t refused_ms;    /* how long the name is refused */
    struct mk_addr network; /* of the client, for a request */
};

/* Returns false if the text is no message. */
bool acme_message_parse(mk_str text, struct acme_message *m, mk_str *name);
int acme_message_send(struct mk_worker *worker, const struct mk_plugin *plugin, unsigned to,
                      const struct acme_message *m, mk_str name);

struct acme_issuer;

struct acme_issuer *acme_issuer_new(struct mk_worker *worker, const struct mk_plugin *plugin,
                                    const struct acme_demand_stats *stats,
                                    const struct acme_helper_job *job) MK_API_MUST_USE;
/* Kills the programs. Accepts NULL. */
void acme_issuer_free(struct acme_issuer *s);

/* The worker is draining: its successor renews certificates. Requests of workers are still handled. */
void acme_issuer_drain(struct acme_issuer *s);

void acme_issuer_on_request(struct acme_issuer *s, const struct acme_message *m, mk_str name);

#endif
