/* SPDX-License-Identifier: Apache-2.0 */
/* The handshakes of a worker that wait for certificates. The worker asks the issuer (issuer.h), which is in worker 0, by
 * messages. */
#ifndef ACME_DEMAND_H
#define ACME_DEMAND_H

#include "issuer.h"

struct acme_demand;

/* `specs`: the certificates of the configuration, which clients need not request. */
struct acme_demand *acme_demand_new(struct mk_worker *worker, const struct mk_plugin *plugin,
                                    const struct acme_demand_stats *stats, const struct acme_cert_spec *specs,
                                    const struct acme_allow_list *allow_list) MK_API_MUST_USE;
/* Accepts NULL. */
void acme_demand_free(struct acme_demand *d);

/* For mk_config_tls_on_demand(). */
int acme_demand_request(struct acme_demand *d, mk_str name, const struct mk_addr *client,
                        struct mk_tls_waiter *waiter);
void acme_demand_cancel(struct acme_demand *d, struct mk_tls_waiter *waiter);

/* Handles the issuer's answer. */
void acme_demand_on_answer(struct acme_demand *d, const struct acme_message *m, mk_str name);

#endif
