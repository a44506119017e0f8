/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up the servers that a source lists. Blocks, so it runs in a thread, and uses only its argument. */
#ifndef MK_UPSTREAM_DISCOVERY_LOOKUP_H
#define MK_UPSTREAM_DISCOVERY_LOOKUP_H

#include <sys/types.h>

#include "upstream/discovered.h"
#include "upstream/discovery_type.h"

/* Identifies the content of a file; all zero: never read. */
struct mk_file_version {
    dev_t device;
    ino_t inode;
    int64_t size, changed_s, changed_ns;
};

struct mk_discovery_lookup {
    void *owner; /* of the caller; NULL: the worker stops */
    const struct mk_discovery_source *source;
    int cancel_fd;                  /* readable: the worker stops */
    struct mk_file_version version; /* the version that was read last; then the version that was found */
    int error; /* -EALREADY: the file has not changed; otherwise, `message` says what failed */
    char message[160];
    uint32_t ttl; /* of the answer, in seconds */
    struct mk_discovered found;
};

void mk_discovery_lookup_run(struct mk_discovery_lookup *l);
/* Reads a file of servers. Returns 0, -EALREADY, or another error. */
int mk_discovery_read_file(struct mk_discovery_lookup *l);
/* Parses the text of such a file. Returns 0, or -EBADMSG with a message. */
int mk_discovery_parse_file(struct mk_discovery_lookup *l, mk_str text);

#endif
