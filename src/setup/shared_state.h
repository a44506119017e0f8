/* SPDX-License-Identifier: Apache-2.0 */
/* State that outlives generations: named memory and descriptors shared by all processes of a server, and
 * folder descriptors. */
#ifndef MK_SETUP_SHARED_STATE_H
#define MK_SETUP_SHARED_STATE_H

#include "base/str.h"
#include "setup/folder_cache.h"

enum { MK_SHARED_STATE_NAME_MAX = 63 };

struct mk_shared_state_region;
struct mk_shared_state_fd;
struct mk_stat_registry;

struct mk_shared_state {
    struct mk_shared_state_region *first;
    struct mk_shared_state_fd *fds;
    struct mk_folder_cache folders;
    struct mk_stat_registry *statistics; /* NULL: no statistics yet */
    bool has_statistics_file;
};

/* Returns zeroed memory or, for a name and size used before, the same memory. Call it in the master:
 * processes forked later share it. NULL: out of memory, or the name is too long. */
void *mk_shared_state_get_memory(struct mk_shared_state *s, mk_str name, size_t size) MK_MUST_USE;
/* Returns the descriptor created by make() when the name was first used. Call it in the master: processes
 * forked later inherit it. make() returns a close-on-exec descriptor, or a negative errno value, which this
 * function then returns. */
int mk_shared_state_fd(struct mk_shared_state *s, mk_str name, int (*make)(void)) MK_MUST_USE;
/* The server's statistics, created on first use. Call it in the master. NULL: out of memory. */
struct mk_stat_registry *mk_shared_state_get_statistics(struct mk_shared_state *s) MK_MUST_USE;
/* Makes the statistics private to this process, which tests a configuration. False: out of memory. */
bool mk_shared_state_detach_statistics(struct mk_shared_state *s) MK_MUST_USE;
void mk_shared_state_fini(struct mk_shared_state *s);

#endif
