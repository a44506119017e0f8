/* SPDX-License-Identifier: Apache-2.0 */
/* The configurations that `monkey run` writes for its two servers. */
#ifndef DUDA_DEV_SERVER_CONFIG_H
#define DUDA_DEV_SERVER_CONFIG_H

#include "source_set.h"

/* The server in front: `folder` has the sockets, `listen` is an address as [SERVER] takes it, `names` are for
 * dev_allowed_hosts_contain(). */
void dev_server_config_write_front(struct mk_buf *out, const char *folder, const char *listen,
                                   const char *names);
/* The server with the services. It has no [SERVER]: that of the file `extra` (NULL: none) is its only one, and
 * so is its [HOST], if there is one. */
void dev_server_config_write_back(struct mk_buf *out, const struct dev_source_set *u, const char *extra);

#endif
