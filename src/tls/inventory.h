/* SPDX-License-Identifier: Apache-2.0 */
/* Lists certificates for `monkey certificates`: reads their files and, if a plugin renews a certificate, the state of
 * its renewal. */
#ifndef MK_TLS_INVENTORY_H
#define MK_TLS_INVENTORY_H

#include "event/tls.h"

/* See struct mk_tls_module. */
mk_err mk_tls_inventory_write(const struct mk_tls_inventory_entry *entries, size_t n,
                              const struct mk_tls_inventory_settings *settings, struct mk_buf *out,
                              bool *has_problem);

#endif
