/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's counters, and the trail that shows what a dead worker was doing. In memory that the master
 * shares; only the worker writes, by mk_counter_add(), what others read. */
#ifndef MK_PROTO_COUNTERS_H
#define MK_PROTO_COUNTERS_H

#include "base/atomic_counter.h"
#include "base/compiler.h"
#include "web/access_record.h"

enum { MK_COUNTERS_LINE_MAX = 96 };

/* Why we ended a connection of HTTP/2 with an error. */
enum mk_h2_reason {
    MK_H2_BAD_PROTOCOL,
    MK_H2_BAD_FRAME_SIZE,
    MK_H2_BAD_COMPRESSION,
    MK_H2_BAD_FLOW,     /* it sent more than its windows allow, or made ours overflow */
    MK_H2_STREAM_ENDED, /* it spoke on streams that had ended */
    MK_H2_MANY_RESETS,  /* requests taken back, or broken, as fast as they came */
    MK_H2_MANY_PINGS,
    MK_H2_MANY_SETTINGS,
    MK_H2_MANY_EMPTY,   /* frames without content */
    MK_H2_MANY_STREAMS, /* more than MAX_CONCURRENT_STREAMS */
    MK_H2_MANY_OTHERS,  /* priorities, unknown frames */
    MK_H2_TINY_WINDOWS,
    MK_H2_LONG_HEAD, /* a head that does not end */
    MK_H2_SLOW,
    MK_H2_NO_MEMORY,
    MK_H2_REASONS
};
/* "protocol", "resets", ... */
extern const char *const mk_counters_h2_reason_names[MK_H2_REASONS];

struct mk_counters {
    uint64_t accepted;    /* connections taken */
    uint64_t dropped;     /* connections refused: over a limit */
    uint64_t open;        /* connections now */
    uint64_t secured;     /* of them: agreed upon TLS, */
    uint64_t unsecured;   /* or should have and did not */
    uint64_t requests;    /* records made */
    uint64_t by_class[6]; /* responses by the first digit of their status; 0: none was begun */
    uint64_t by_ending[MK_OUTCOMES];
    uint64_t sent;                    /* bytes that sockets took */
    uint64_t h2_ended[MK_H2_REASONS]; /* connections that were ended for it */
    uint64_t cold_reads;              /* times that a file had to be fetched from its disk first */

    uint64_t pulse; /* of the loop: see net/loop.h */

    /* The request being worked on, and the last 16 moves of its connection, the latest in the lowest four
     * bits. */
    uint64_t moves;
    char line[MK_COUNTERS_LINE_MAX]; /* method and target, ended by NUL */
};

#endif
