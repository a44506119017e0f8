/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of the meta protocol, read from bytes. It knows no connection. */
#ifndef DUDA_MEMCACHE_REPLY_H
#define DUDA_MEMCACHE_REPLY_H

#include <monkey/str.h>
#include <stdint.h>
#include <sys/types.h>

enum memcache_word {
    MEMCACHE_DONE,         /* HD */
    MEMCACHE_VALUE,        /* VA */
    MEMCACHE_MISS,         /* EN, NF */
    MEMCACHE_NOT_STORED,   /* NS */
    MEMCACHE_CHANGED,      /* EX */
    MEMCACHE_HERE,         /* MN: the answer to a sign of life */
    MEMCACHE_CLIENT_ERROR, /* CLIENT_ERROR, ERROR */
    MEMCACHE_SERVER_ERROR
};

struct memcache_reply {
    enum memcache_word word;
    mk_str value; /* of VALUE; what an error says */
    uint64_t cas; /* 0: it says none */
};

/* Reads the first reply of `in`; its texts are slices of that. The bytes of it; 0: it is not complete;
 * -EMSGSIZE: its value is longer than `max`; -EPROTO: this is none. */
ssize_t memcache_reply_read(mk_str in, size_t max, struct memcache_reply *out);

#endif
