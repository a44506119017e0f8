/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the URLs at which a browser reaches this server. */
#ifndef MK_SERVER_URLS_H
#define MK_SERVER_URLS_H

#include "worker/listeners.h"

/* Writes a line per URL. For a wildcard address, writes a line that says so, and a URL for each address of
 * the machine. */
void mk_urls_write(const struct mk_listeners *listeners, const struct mk_listens *expected,
                   struct mk_buf *out);

#endif
