/* SPDX-License-Identifier: Apache-2.0 */
#include "refusals.h"

void acme_refusals_init(struct acme_refusals *r)
{
    *r = (struct acme_refusals){0};
    mk_random(&r->key, sizeof r->key);
}

void acme_refusals_set(struct acme_refusals *r, mk_str name, uint64_t until_ms, uint64_t now_ms)
{
    uint64_t hash = mk_hash(&r->key, name);
    size_t set = hash % ACME_REFUSALS_SETS, at = 0;
    for (size_t i = 0; i < ACME_REFUSALS_WAYS; i++) {
        if (r->slots[set][i].hash == hash) {
            at = i;
            break;
        }
        if (r->slots[set][i].until_ms < r->slots[set][at].until_ms)
            at = i;
    }
    if (until_ms <= now_ms && r->slots[set][at].hash != hash)
        return;
    r->slots[set][at].hash = hash;
    r->slots[set][at].until_ms = until_ms;
}

uint64_t acme_refusals_get(const struct acme_refusals *r, mk_str name, uint64_t now_ms)
{
    uint64_t hash = mk_hash(&r->key, name);
    size_t set = hash % ACME_REFUSALS_SETS;
    for (size_t i = 0; i < ACME_REFUSALS_WAYS; i++)
        if (r->slots[set][i].hash == hash)
            return r->slots[set][i].until_ms > now_ms ? r->slots[set][i].until_ms : 0;
    return 0;
}
