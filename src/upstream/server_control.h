/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the servers of an upstream while the server runs: an administrator adds, removes, drains and
 * enables servers, and sets their weights, and sources (discovery.h) list servers.
 *
 * The mode and the weight of a server are in shared memory, so they apply to all workers at once, and to workers
 * that start later. A server that is added takes the slot of a spare server (MaxServers): its address is in
 * shared memory as well, and each worker opens its own backend for it. A slot is reused when no worker has a
 * backend for it. A worker may die at any instruction. */
#ifndef MK_UPSTREAM_SERVER_CONTROL_H
#define MK_UPSTREAM_SERVER_CONTROL_H

#include "upstream/pool_type.h"

struct mk_discovered;
struct mk_discovery_source;
struct mk_server_control_memory;

/* Master only. NULL: out of memory, and the error was reported. */
struct mk_server_control_memory *mk_server_control_init(struct mk_config *config);
/* Master only: sets up the slot of a spare server of a new configuration. A server that a source of the new
 * configuration has listed stays. If the configuration repeats its predecessor, a server that the administrator has
 * added stays as well. */
void mk_server_control_publish_spare(struct mk_upstreams *all, const struct mk_upstream_server *s);
/* Has the source listed servers that are in use? */
bool mk_server_control_has_discovered(const struct mk_discovery_source *source);
/* Clears what the worker that had the row has left behind. */
void mk_server_control_clear_worker(struct mk_server_control_memory *m, unsigned row);

/* Opens the backends of the servers that were added before this worker started. */
void mk_server_control_open_added(struct mk_pool *p);
/* Opens the backend of an added server of which no message has arrived. Closes the backend of a removed server once
 * its connections are closed. True: connections are left. */
bool mk_server_control_sweep(struct mk_backend *o);
void mk_server_control_free_names(struct mk_pool *p);

/* Runs a command of the administrator: see mk_plugin.on_command. The state is saved in another thread, because the
 * disk may be slow; until then, no other change is possible. */
int mk_server_control_run(struct mk_pool *p, mk_str words, struct mk_buf *out,
                          const struct mk_command_end *end);
/* Handles the message that another worker has changed a server. False: it is another message. */
bool mk_server_control_on_message(struct mk_pool *p, mk_str message);

/* Updates the servers of a source: adds the servers that it lists for the first time, and removes the servers that it
 * no longer lists; their open requests finish. Returns 0; -EAGAIN: repeat it soon, because another process changes a server, or because a removed
 * server still occupies a slot. `n_without_room`: servers that do not fit into MaxServers. */
int mk_server_control_apply(struct mk_pool *p, const struct mk_discovery_source *source,
                            const struct mk_discovered *found, unsigned *n_without_room);
/* Lets the requests of all workers that wait for a server of the upstream look again. */
void mk_server_control_notify(struct mk_pool *p, const struct mk_upstream *u);

#endif
