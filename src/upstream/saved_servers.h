/* SPDX-License-Identifier: Apache-2.0 */
/* The saved changes of the servers that sources list (discovery.h), in memory that all workers share: StateFile is
 * read only when the configuration is loaded, but a change also applies to a server that a source lists later. A
 * worker accesses the list while it holds the lock of changes (conn_limit.h), and may die at any instruction. */
#ifndef MK_UPSTREAM_SAVED_SERVERS_H
#define MK_UPSTREAM_SAVED_SERVERS_H

#include "upstream/server_state.h"

struct mk_saved_server {
    uint64_t serial; /* a later change has a greater one; 0: the entry is unused. Written last */
    uint32_t mode, weight;
    char name[MK_SERVER_NAME_MAX];
};

struct mk_saved_servers {
    uint64_t serial;    /* of the last change */
    uint32_t n_changes; /* number of times that a worker has changed the list or StateFile */
    struct mk_saved_server of[MK_SERVERS_MAX];
};

/* Master only: finds the list of an upstream with sources and a StateFile. Call it before the file is read. */
bool mk_saved_servers_init(struct mk_config *config, struct mk_upstream *u) MK_MUST_USE;
/* Master only: copies the entries of StateFile to the lists, unless a worker has saved a change since the file was
 * read. */
void mk_saved_servers_publish(const struct mk_upstreams *all);

/* Returns false if the server has no saved change. Otherwise, sets *out, whose server and flags are unspecified. */
bool mk_saved_servers_find(const struct mk_upstream *u, mk_str name, struct mk_server_state_entry *out);
/* Saves the current changes of all listed servers. Those of other servers stay, but the oldest are dropped if StateFile
 * has no room for them beside `n_lines` other lines. */
void mk_saved_servers_update(const struct mk_upstream *u, unsigned n_lines);
/* The changed entry with the lowest serial above `serial`; NULL: none. Begin with 0. */
struct mk_saved_server *mk_saved_servers_next(struct mk_saved_servers *list, uint64_t serial);
/* Call it after StateFile was written. */
void mk_saved_servers_file_written(const struct mk_upstream *u);

#endif
