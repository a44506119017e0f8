/* SPDX-License-Identifier: Apache-2.0 */
/* What outlives the generations of a configuration: memory and descriptors that all processes of a server
 * share, by name, and the descriptors of folders. */
#ifndef MK_SETTINGS_SHARED_STATE_H
#define MK_SETTINGS_SHARED_STATE_H

#include "base/str.h"
#include "settings/folder_cache.h"

enum { MK_SHARED_STATE_NAME_MAX = 63 };

struct mk_shared_state_region;
struct mk_shared_state_fd;
struct mk_stat_registry;

struct mk_shared_state {
    struct mk_shared_state_region *first;
    struct mk_shared_state_fd *fds;
    struct mk_folder_cache folders;
    struct mk_stat_registry *statistics; /* NULL: nothing is counted yet */
};

/* Returns zeroed memory or, for a name and size used before, the same memory. Call it in the master:
 * processes forked later share it. NULL: no memory, or the name is too long. */
void *mk_shared_state_get_memory(struct mk_shared_state *s, mk_str name, size_t size) MK_MUST_USE;
/* The descriptor that make() returned when the name was used first. Call it in the master: processes forked later
 * inherit it. make() returns one with close-on-exec, or a negated errno value, as this does then. */
int mk_shared_state_fd(struct mk_shared_state *s, mk_str name, int (*make)(void)) MK_MUST_USE;
/* The statistics of the server, made on first use. Call it in the master. NULL: no memory. */
struct mk_stat_registry *mk_shared_state_get_statistics(struct mk_shared_state *s) MK_MUST_USE;
/* For a process that tries a configuration out: from here on, what it counts stays with it. False: no memory. */
bool mk_shared_state_detach_statistics(struct mk_shared_state *s) MK_MUST_USE;
void mk_shared_state_fini(struct mk_shared_state *s);

#endif
