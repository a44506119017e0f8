/* SPDX-License-Identifier: Apache-2.0 */
#include "rate_key.h"

enum { V6_NETWORK = 8 };

struct subject {
    uint64_t rule, path, header;
    uint8_t address[16];
    uint64_t is_unix;
};

/* Counts an IPv6 client by its /64 network, because a subscriber can use all addresses in it. */
static void set_client_prefix(struct subject *subject, const struct mk_addr *peer)
{
    static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
    bool is_v4 = memcmp(peer->ip, v4, sizeof v4) == 0;
    memcpy(subject->address, peer->ip, is_v4 ? sizeof subject->address : V6_NETWORK);
    subject->is_unix = peer->is_unix;
}

static uint64_t hash_of_path(const struct limits_table *table, const struct mk_request *request, mk_str path)
{
    const struct mk_vhost *host = mk_request_vhost(request);
    uint64_t hash = mk_hash(&table->key, path);
    return host ? hash ^ mk_hash(&table->key, mk_vhost_name(host)) << 1 : hash;
}

uint64_t limits_rate_key_hash(const struct limits_rule *rule, const struct limits_table *table,
                              const struct mk_request *request, mk_str path)
{
    struct subject subject = {.rule = rule->id};
    mk_str header =
        rule->by & LIMITS_BY_HEADER ? mk_request_header(request, rule->header) : mk_str_of(NULL, 0);
    if (header.len)
        subject.header = mk_hash(&table->key, header);
    /* A request without the header is counted by the client's address instead. */
    if ((rule->by & LIMITS_BY_ADDRESS) || ((rule->by & LIMITS_BY_HEADER) && !header.len))
        set_client_prefix(&subject, mk_request_client_addr(request));
    if (rule->by & LIMITS_BY_PATH)
        subject.path = hash_of_path(table, request, path);
    return mk_hash(&table->key, mk_str_of((const char *)&subject, sizeof subject));
}
