/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of certificates on demand, for the plugin metrics. */
#ifndef ACME_DEMAND_STATS_H
#define ACME_DEMAND_STATS_H

#include <monkey/config.h>
#include <monkey/stats.h>
#include <monkey/worker.h>

/* How a request for a certificate ended. The first ones are counted once for each name, whatever number of clients waits for
 * it, and the others for each handshake. */
enum acme_result {
    ACME_RESULT_ISSUED,
    ACME_RESULT_FAILED,      /* the authority, or the program that asks it */
    ACME_RESULT_NOT_ALLOWED, /* by AllowEndpoint or AllowFile */
    ACME_RESULT_NO_ANSWER,   /* AllowEndpoint has failed */
    ACME_RESULT_LIMITED,     /* OnDemandRate, the rate of questions, or too many names in progress */
    ACME_RESULT_REMEMBERED,  /* the name was refused lately */
    ACME_RESULT_BUSY,        /* too many handshakes wait */
    ACME_RESULT_TIMEOUT,     /* the handshake has waited for too long */
    ACME_RESULTS
};

struct acme_demand_stats {
    uint32_t results[ACME_RESULTS], active;
};

/* Only in load() and host(). */
void acme_demand_stats_register(struct mk_config *config, struct acme_demand_stats *s);
void acme_demand_stats_count(const struct mk_worker *worker, const struct acme_demand_stats *s,
                             enum acme_result result);
/* Sets the number of names whose certificates are being obtained. */
void acme_demand_stats_set_active(const struct mk_worker *worker, const struct acme_demand_stats *s,
                                  size_t n);

#endif
