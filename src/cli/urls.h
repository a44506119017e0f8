/* SPDX-License-Identifier: Apache-2.0 */
/* Where a browser finds us. */
#ifndef MK_CLI_URLS_H
#define MK_CLI_URLS_H

#include "server/listeners.h"

/* A line for each URL; an address that means all addresses is written as those that the machine has. */
void mk_urls_write(const struct mk_listeners *listeners, const struct mk_listens *wanted, struct mk_buf *out);

#endif
