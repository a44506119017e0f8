/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the processes of a server. */
#ifndef WR_FIND_SERVER_H
#define WR_FIND_SERVER_H

#include "load/url.h"
#include "wr/process_tree.h"

enum { WR_FIND_PIDS_MAX = 64 };

enum wr_find_by { WR_FIND_BY_PID, WR_FIND_BY_PORT, WR_FIND_BY_NAME };

struct wr_find {
    enum wr_find_by by;
    pid_t pids[WR_FIND_PIDS_MAX];
    size_t n_pids;
    unsigned port;
    const struct load_url *url; /* the URL that `port` comes from, which selects the listener; NULL: none */
    const char *name;
    const char *cgroup; /* NULL: detect whether the server has its own cgroup */
};

/* Fills the tree with the server's processes and all their descendants. On failure, prints a message and
 * returns false. */
bool wr_find_server(const struct wr_find *what, struct wr_process_tree *out) MK_MUST_USE;
/* Returns "pid", "port" or "name". */
const char *wr_find_by_to_text(enum wr_find_by by);

#endif
