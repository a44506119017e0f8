/* SPDX-License-Identifier: Apache-2.0 */
/* The configurations that `monkey run` writes for its two servers. */
#ifndef DUDA_DEV_CONFIGS_H
#define DUDA_DEV_CONFIGS_H

#include "units.h"

/* The server in front: `folder` has the sockets, `listen` is an address as [SERVER] takes it, `names` are for
 * dev_names_have(). */
void dev_configs_write_front(struct mk_buf *out, const char *folder, const char *listen, const char *names);
/* The server with the services. It has no [SERVER]: that of the file `extra` (NULL: none) is its only one, and
 * so is its [HOST], if there is one. */
void dev_configs_write_back(struct mk_buf *out, const struct dev_units *u, const char *extra);

#endif
