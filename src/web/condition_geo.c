/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions `country` and `asn`. */
#include "web/condition.h"

bool mk_condition_geo_matches(const struct mk_condition *c, const struct mk_addr *addr)
{
    struct mk_geo_record record = {.asn = 0};
    for (const struct mk_geo *g = addr->is_unix ? NULL : c->geo; g; g = g->next)
        g->find(g, addr, &record);
    if (c->subject == MK_CONDITION_ASN) {
        for (size_t i = 0; i < c->n_numbers; i++)
            if (c->numbers[i] == record.asn)
                return true;
        return false;
    }
    if (!record.country[0])
        return c->matches_empty;
    for (size_t i = 0; i < c->n_words; i++)
        if (memcmp(c->words[i].p, record.country, sizeof record.country) == 0)
            return true;
    return false;
}
