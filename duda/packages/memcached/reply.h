/* SPDX-License-Identifier: Apache-2.0 */
/* Parses replies of the meta protocol, without I/O. */
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
    MEMCACHED_NOOP,         /* MN: the reply to a keep-alive probe */
    MEMCACHED_CLIENT_ERROR, /* CLIENT_ERROR, ERROR */
    MEMCACHED_SERVER_ERROR
};

struct memcached_reply {
    enum memcached_status word;
    mk_str value; /* the value of VALUE, or an error message */
    uint64_t cas; /* 0: none */
};

/* Parses the first reply in `in`; the strings of *out are slices of `in`. Returns the length of the reply, 0
 * if it is incomplete, -EMSGSIZE if its value exceeds `max`, or -EPROTO if it is malformed. */
ssize_t memcached_reply_parse(mk_str in, size_t max, struct memcached_reply *out);

#endif
