/* SPDX-License-Identifier: Apache-2.0 */
/* StateFile of an upstream: the changes of its servers that the administrator has saved. A line for each server:
 * its address, then `added` or `discovered`, `backup`, `weight=N`, and `drain`, `drain=move` or `removed`. */
#ifndef MK_UPSTREAM_SERVER_STATE_H
#define MK_UPSTREAM_SERVER_STATE_H

#include "base/err.h"
#include "upstream/server.h"

struct mk_server_state_entry {
    mk_str server;
    enum mk_server_mode mode;
    unsigned weight; /* 0: as in the configuration */
    bool is_added, is_backup;
    bool is_discovered; /* a source lists the server: discovery.h */
};

struct mk_server_state {
    struct mk_server_state_entry entries[MK_SERVERS_MAX];
    unsigned n;
};

/* Reads the file; its text lives as long as the configuration. If the file does not exist, or is malformed,
 * which is reported as a warning, the state is empty. */
void mk_server_state_read(struct mk_config *config, const void *section, mk_str path,
                          struct mk_server_state *out);
/* Parses one line that is neither empty nor a comment. Returns NULL, or a text that describes valid input. */
const char *mk_server_state_parse_line(mk_str line, struct mk_server_state_entry *out);
/* Appends the changes of the servers, in the format of the file, and keeps those of listed servers: saved_servers.h. */
void mk_server_state_save(const struct mk_upstream *u, struct mk_buf *out);
/* Replaces the file atomically. It is on disk when this returns 0. Blocks; any thread may call it. */
mk_err mk_server_state_write(mk_str path, mk_str text) MK_MUST_USE;

enum { MK_SERVER_STATE_FILE_MAX = 32 * 1024 };

#endif
