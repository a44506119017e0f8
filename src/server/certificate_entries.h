/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the certificates of a configuration for mk_tls_module.inventory(). */
#ifndef MK_SERVER_CERTIFICATE_ENTRIES_H
#define MK_SERVER_CERTIFICATE_ENTRIES_H

#include "setup/config_generation_type.h"

struct mk_certificate_entries {
    struct mk_tls_inventory_entry *at;
    size_t n;
};

/* A certificate has an entry for each host that uses it. The list is allocated in `arena`. False: out of memory. */
bool mk_certificate_entries_collect(const struct mk_config_generation *g, struct mk_arena *arena,
                                    struct mk_certificate_entries *out) MK_MUST_USE;

#endif
