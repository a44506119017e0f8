/* SPDX-License-Identifier: Apache-2.0 */
#include "who.h"

enum { V6_NETWORK = 8 };

struct who {
    uint64_t rule, path, field;
    uint8_t address[16];
    uint64_t is_unix;
};

/* Who has an IPv6 network at home has all addresses of it. */
static void set_address(struct who *who, const struct mk_peer *peer)
{
    static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
    bool is_v4 = memcmp(peer->ip, v4, sizeof v4) == 0;
    memcpy(who->address, peer->ip, is_v4 ? sizeof who->address : V6_NETWORK);
    who->is_unix = peer->is_unix;
}

static uint64_t hash_of_path(const struct limits_table *table, const struct mk_request *request)
{
    const struct mk_host *host = mk_request_site(request);
    uint64_t hash = mk_hash(&table->key, mk_request_path(request));
    return host ? hash ^ mk_hash(&table->key, mk_host_name(host)) << 1 : hash;
}

uint64_t limits_who(const struct limits_rule *rule, const struct limits_table *table,
                    const struct mk_request *request)
{
    struct who who = {.rule = rule->id};
    mk_str field = rule->by & LIMITS_BY_FIELD ? mk_request_field(request, rule->field) : mk_str_of(NULL, 0);
    if (field.len)
        who.field = mk_hash(&table->key, field);
    /* Who does not send the field is somebody all the same. */
    if ((rule->by & LIMITS_BY_ADDRESS) || ((rule->by & LIMITS_BY_FIELD) && !field.len))
        set_address(&who, mk_request_address(request));
    if (rule->by & LIMITS_BY_PATH)
        who.path = hash_of_path(table, request);
    return mk_hash(&table->key, mk_str_of((const char *)&who, sizeof who));
}
