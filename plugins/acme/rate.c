/* SPDX-License-Identifier: Apache-2.0 */
#include "rate.h"

#include <string.h>

enum {
    ASKS_PER_S = 20, /* questions to the allow endpoint */
    ASKS_BURST = 100,
    SHARE = 10, /* of a client: the SHARE-th part */
    PREFIX_V4 = 12 + 3,
    PREFIX_V6 = 7,
};

static struct acme_rate share_of(struct acme_rate rate)
{
    uint64_t burst = rate.burst / SHARE;
    return (struct acme_rate){rate.interval_ms * SHARE, burst ? burst : 1};
}

void acme_rates_init(struct acme_rates *r, struct acme_rate issues)
{
    *r = (struct acme_rates){
        .all = {[ACME_RATE_ASKS] = {1000 / ASKS_PER_S, ASKS_BURST}, [ACME_RATE_ISSUES] = issues}};
    for (size_t i = 0; i < ACME_RATES; i++)
        r->client[i] = share_of(r->all[i]);
    mk_random(&r->key, sizeof r->key);
}

struct mk_addr acme_rate_network(const struct mk_addr *client)
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
    struct mk_addr network = {.is_unix = client->is_unix};
    if (!client->is_unix)
        memcpy(network.ip, client->ip,
               memcmp(client->ip, mapped, sizeof mapped) == 0 ? (size_t)PREFIX_V4 : (size_t)PREFIX_V6);
    return network;
}

static bool is_same_network(const struct mk_addr *a, const struct mk_addr *b)
{
    return a->is_unix == b->is_unix && memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

static uint64_t idle_from(const struct acme_client_rates *c)
{
    uint64_t latest = 0;
    for (size_t i = 0; i < ACME_RATES; i++)
        latest = c->ms[i] > latest ? c->ms[i] : latest;
    return latest;
}

/* Replaces the client that is closest to having its whole rate again. */
static struct acme_client_rates *find_client(struct acme_rates *r, const struct mk_addr *network)
{
    uint64_t hash = mk_hash(&r->key, mk_str_of((const char *)network->ip, sizeof network->ip));
    struct acme_client_rates *set = r->clients[hash % ACME_RATE_SETS], *oldest = set;
    for (size_t i = 0; i < ACME_RATE_WAYS; i++) {
        if (idle_from(&set[i]) && is_same_network(&set[i].client, network))
            return &set[i];
        if (idle_from(&set[i]) < idle_from(oldest))
            oldest = &set[i];
    }
    *oldest = (struct acme_client_rates){.client = *network};
    return oldest;
}

/* The generic cell rate algorithm: *ms is when the rate is unused again. */
static uint64_t next_ms(const struct acme_rate *rate, uint64_t ms, uint64_t now_ms)
{
    uint64_t from = ms > now_ms ? ms : now_ms;
    return from - now_ms <= rate->interval_ms * (rate->burst - 1) ? from + rate->interval_ms : 0;
}

bool acme_rates_take(struct acme_rates *r, enum acme_rate_of what, const struct mk_addr *network,
                     uint64_t now_ms)
{
    struct acme_client_rates *c = find_client(r, network);
    uint64_t own = next_ms(&r->client[what], c->ms[what], now_ms);
    uint64_t all = own ? next_ms(&r->all[what], r->all_ms[what], now_ms) : 0;
    if (!all)
        return false;
    c->ms[what] = own;
    r->all_ms[what] = all;
    return true;
}
