/* SPDX-License-Identifier: Apache-2.0 */
/* Formats commands of the meta protocol. */
#ifndef DUDA_MEMCACHED_COMMAND_H
#define DUDA_MEMCACHED_COMMAND_H

#include <monkey/buf.h>
#include <stdint.h>

enum memcached_command_type {
    MEMCACHED_GET,
    MEMCACHED_GET_CAS, /* the value and its CAS unique */
    MEMCACHED_SET,
    MEMCACHED_ADD,
    MEMCACHED_CAS,
    MEMCACHED_DELETE,
    MEMCACHED_TOUCH,
    MEMCACHED_INCR
};

struct memcached_command {
    enum memcached_command_type verb;
    mk_str key, value;
    uint64_t ttl_ms, cas;
    int64_t delta;
};

/* Returns 0, or -EINVAL if Memcached does not allow the key. */
int memcached_key_check(mk_str key);
/* `now` is in seconds since 1970. The key must be valid. */
void memcached_command_format(struct mk_buf *out, const struct memcached_command *c, int64_t now);

#endif
