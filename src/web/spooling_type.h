/* SPDX-License-Identifier: Apache-2.0 */
/* What limits the content that a worker spools (monkey/spool.h): memory and disk space, of all clients and of
 * each client address. */
#ifndef MK_WEB_SPOOLING_TYPE_H
#define MK_WEB_SPOOLING_TYPE_H

#include <monkey/spool.h>

#include "base/hash.h"
#include "net/helper.h"

enum { MK_SPOOL_BUCKETS = 64 };

struct mk_spool_client;

/* One for each worker. All zero: nothing leaves the memory. */
struct mk_spools {
    const char *folder; /* NULL: no plugin has asked for one */
    uint64_t max;       /* bytes in files, of all clients; UINT64_MAX: no limit */
    uint64_t stored;
    struct mk_helper *helper; /* writes the files; NULL: the caller does */
    struct mk_hash_key hash_key;
    struct mk_spool_client *clients[MK_SPOOL_BUCKETS];
};

#endif
