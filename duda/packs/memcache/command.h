/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the meta protocol, as bytes. */
#ifndef DUDA_MEMCACHE_COMMAND_H
#define DUDA_MEMCACHE_COMMAND_H

#include <monkey/buf.h>
#include <stdint.h>

enum memcache_verb {
    MEMCACHE_GET,
    MEMCACHE_GET_VERSION, /* the value, and which version it is */
    MEMCACHE_PUT,
    MEMCACHE_ADD,
    MEMCACHE_SWAP,
    MEMCACHE_DELETE,
    MEMCACHE_TOUCH,
    MEMCACHE_COUNT
};

struct memcache_command {
    enum memcache_verb verb;
    mk_str key, value;
    uint64_t ttl_ms, cas;
    int64_t delta;
};

/* 0, or -EINVAL: no key of Memcached. */
int memcache_command_check(mk_str key);
/* `now`: seconds since 1970. The key must be one. */
void memcache_command_write(struct mk_buf *out, const struct memcache_command *c, int64_t now);

#endif
