/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the configurations of the two servers of `monkey run`. */
#ifndef DUDA_DEV_SERVER_CONFIG_H
#define DUDA_DEV_SERVER_CONFIG_H

#include "source_set.h"

/* The front server: `folder` contains the sockets, `listen` is an address in the syntax of [SERVER], `names`
 * are for dev_allowed_hosts_contain(). */
void dev_server_config_write_front(struct mk_buf *out, const char *folder, const char *listen,
                                   const char *names);
/* The back server, with the services. The configuration has no [SERVER] or [HOST] of its own: those of the
 * file `extra` (NULL: none) are the only ones. */
void dev_server_config_write_back(struct mk_buf *out, const struct dev_source_set *u, const char *extra);

#endif
