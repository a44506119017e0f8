/* SPDX-License-Identifier: Apache-2.0 */
/* The URLs of this server for a browser. */
#ifndef MK_SERVER_URLS_H
#define MK_SERVER_URLS_H

#include "worker/listeners.h"

/* Writes a line per URL. A wildcard address gets its own line, and a URL for each address of the machine. */
void mk_urls_write(const struct mk_listeners *listeners, const struct mk_listens *expected,
                   struct mk_buf *out);

#endif
