/* SPDX-License-Identifier: Apache-2.0 */
/* Where a browser finds us. */
#ifndef MK_CLI_URLS_H
#define MK_CLI_URLS_H

#include "os/addr.h"

/* A line for each URL; an address that means all addresses is written as those that the machine has. */
void mk_urls_write(const struct mk_addr *listeners, unsigned n, struct mk_buf *out);

#endif
