/* SPDX-License-Identifier: Apache-2.0 */
/* The configurations of the two servers of `monkey run`. */
#ifndef DUDA_DEV_SERVER_CONFIG_H
#define DUDA_DEV_SERVER_CONFIG_H

#include "source_set.h"

/* Writes the configuration of the front server. `folder` contains the sockets, `listen` is an address in the
 * syntax of [SERVER], and `names` are the names for dev_server_config_allows_host(). If `quiet` is true, the
 * server prints no line for each request. */
void dev_server_config_write_front(struct mk_buf *out, const char *folder, const char *listen,
                                   const char *names, bool quiet);
/* Writes the configuration of the back server, which runs the services. It has no [SERVER] or [HOST] section,
 * so that the file `extra` (NULL: none) can provide them. */
void dev_server_config_write_back(struct mk_buf *out, const struct dev_source_set *u, const char *extra);

/* Returns whether `monkey run` accepts this host name. A page of another site can resolve its own name to
 * this machine and then read the responses of the service (DNS rebinding), so only IP addresses and the names
 * of this machine are accepted. `names` lists further names, separated by commas or spaces. `host` is the
 * host of a request, without port. An absent host (HTTP/1.0 without Host) is accepted: browsers always send
 * one. */
bool dev_server_config_allows_host(mk_str names, mk_str host);

/* Appends a quoted string. */
void dev_server_config_quote(struct mk_buf *out, const char *text);
/* Appends a path for `Load`, whose value cannot be quoted. */
void dev_server_config_quote_path(struct mk_buf *out, const char *path);

#endif
