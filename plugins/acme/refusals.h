/* SPDX-License-Identifier: Apache-2.0 */
/* Names that get no certificate for some time. If the table is full, it forgets the name whose time ends first. */
#ifndef ACME_REFUSALS_H
#define ACME_REFUSALS_H

#include <monkey/text.h>

enum { ACME_REFUSALS_SETS = 512, ACME_REFUSALS_WAYS = 8 };

struct acme_refusals {
    struct mk_hash_key key; /* names are known by their hash */
    struct {
        uint64_t hash, until_ms;
    } slots[ACME_REFUSALS_SETS][ACME_REFUSALS_WAYS];
};

void acme_refusals_init(struct acme_refusals *r);
/* Remembers the name until then; 0: forgets it. */
void acme_refusals_set(struct acme_refusals *r, mk_str name, uint64_t until_ms, uint64_t now_ms);
/* Returns until when the name is refused; 0: it is not. */
uint64_t acme_refusals_get(const struct acme_refusals *r, mk_str name, uint64_t now_ms);

#endif
