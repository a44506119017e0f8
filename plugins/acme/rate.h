/* SPDX-License-Identifier: Apache-2.0 */
/* Rates of requests for certificates: of all clients together, and of each client network, so that no client can use
 * up what all share. */
#ifndef ACME_RATE_H
#define ACME_RATE_H

#include <monkey/addr.h>
#include <monkey/text.h>

/* What is counted. */
enum acme_rate_of { ACME_RATE_ASKS, ACME_RATE_ISSUES, ACME_RATES };

/* One every interval_ms, and up to `burst` at once. */
struct acme_rate {
    uint64_t interval_ms, burst;
};

enum { ACME_RATE_SETS = 256, ACME_RATE_WAYS = 4 };

struct acme_rates {
    struct acme_rate all[ACME_RATES], client[ACME_RATES];
    struct mk_hash_key key;
    uint64_t all_ms[ACME_RATES]; /* the time at which the rate is unused again */
    struct acme_client_rates {
        struct mk_addr client;
        uint64_t ms[ACME_RATES];
    } clients[ACME_RATE_SETS][ACME_RATE_WAYS];
};

/* `issues`: the rate of all clients. A client network may use a tenth of each rate. */
void acme_rates_init(struct acme_rates *r, struct acme_rate issues);
/* The network whose clients share a rate: an IPv4 /24 or an IPv6 /56. */
struct mk_addr acme_rate_network(const struct mk_addr *client);
/* Counts one more if both rates allow it. `network`: from acme_rate_network(). */
bool acme_rates_take(struct acme_rates *r, enum acme_rate_of what, const struct mk_addr *network,
                     uint64_t now_ms);

#endif
