/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of the meta protocol, read from bytes. It knows no connection. */
#ifndef DUDA_MEMCACHED_REPLY_H
#define DUDA_MEMCACHED_REPLY_H

#include <monkey/str.h>
#include <stdint.h>
#include <sys/types.h>

enum memcached_status {
    MEMCACHED_DONE,         /* HD */
    MEMCACHED_VALUE,        /* VA */
    MEMCACHED_MISS,         /* EN, NF */
    MEMCACHED_NOT_STORED,   /* NS */
    MEMCACHED_CHANGED,      /* EX */
    MEMCACHED_NOOP,         /* MN: the answer to a sign of life */
    MEMCACHED_CLIENT_ERROR, /* CLIENT_ERROR, ERROR */
    MEMCACHED_SERVER_ERROR
};

struct memcached_reply {
    enum memcached_status word;
    mk_str value; /* of VALUE; what an error says */
    uint64_t cas; /* 0: it says none */
};

/* Reads the first reply of `in`; its texts are slices of that. The bytes of it; 0: it is not complete;
 * -EMSGSIZE: its value is longer than `max`; -EPROTO: this is none. */
ssize_t memcached_reply_parse(mk_str in, size_t max, struct memcached_reply *out);

#endif
