/* SPDX-License-Identifier: Apache-2.0 */
/* The configurations of the two servers of `monkey run`. */
#ifndef DUDA_DEV_SERVER_CONFIG_H
#define DUDA_DEV_SERVER_CONFIG_H

#include "source_set.h"

/* The front server: `folder` contains the sockets, `listen` is an address in the syntax of [SERVER], `names`
 * are for dev_server_config_allows_host(). */
void dev_server_config_write_front(struct mk_buf *out, const char *folder, const char *listen,
                                   const char *names);
/* The back server, with the services. The configuration has no [SERVER] or [HOST] of its own: those of the
 * file `extra` (NULL: none) are the only ones. */
void dev_server_config_write_back(struct mk_buf *out, const struct dev_source_set *u, const char *extra);

/* The host names that `monkey run` accepts. A page of another site can resolve its own name to this machine
 * and then read the responses of the service (DNS rebinding). Only IP addresses and the names of this machine
 * are therefore accepted. `names`: further names, separated by commas or spaces. `host`: the host of a
 * request, without port; absent: no browser sent the request. */
bool dev_server_config_allows_host(mk_str names, mk_str host);

/* Appends a quoted string. */
void dev_server_config_quote(struct mk_buf *out, const char *text);
/* Appends a path for `Load`, which does not unquote. */
void dev_server_config_quote_path(struct mk_buf *out, const char *path);

#endif
