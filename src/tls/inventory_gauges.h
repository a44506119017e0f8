/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of certificate files, for plugins such as metrics. */
#ifndef MK_TLS_INVENTORY_GAUGES_H
#define MK_TLS_INVENTORY_GAUGES_H

#include "event/tls.h"
#include "tls/inventory_state.h"

/* See inventory_table of struct mk_tls_module. */
unsigned mk_tls_inventory_gauges_register(struct mk_stat_registry *registry);

/* One pass over all certificates. NULL: out of memory. */
struct mk_tls_inventory_gauges *mk_tls_inventory_gauges_begin(struct mk_stat_registry *registry,
                                                              unsigned table_number);
/* Says that the certificate is still there. After all of them, hide_others() hides the series of other certificates, so that
 * new ones reuse them: a registry has a limited number of series. */
void mk_tls_inventory_gauges_keep(struct mk_tls_inventory_gauges *g,
                                  const struct mk_tls_inventory_entry *entry);
void mk_tls_inventory_gauges_hide_others(struct mk_tls_inventory_gauges *g);
/* Sets the gauges of one certificate; further ones than the first 1,000 have none. `expires`: 0: unknown. */
void mk_tls_inventory_gauges_set(struct mk_tls_inventory_gauges *g,
                                 const struct mk_tls_inventory_entry *entry, int64_t expires, bool is_usable,
                                 const struct mk_tls_inventory_state *state);
/* Hides the certificates that were not set in this pass, and frees `g`. */
void mk_tls_inventory_gauges_end(struct mk_tls_inventory_gauges *g);

#endif
