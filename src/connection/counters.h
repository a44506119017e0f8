/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of a worker, and its last request and connection states, which show what a crashed worker was
 * doing. They are in memory shared with the master. Only the worker writes them; it uses mk_counter_add() or
 * mk_counter_set() for counters that other processes read. */
#ifndef MK_CONNECTION_COUNTERS_H
#define MK_CONNECTION_COUNTERS_H

#include "base/atomic_counter.h"
#include "base/compiler.h"
#include "web/access_record.h"

enum { MK_COUNTERS_LINE_MAX = 96 };

/* Reasons for closing an HTTP/2 connection with an error. */
enum mk_h2_reason {
    MK_H2_BAD_PROTOCOL,
    MK_H2_BAD_FRAME_SIZE,
    MK_H2_BAD_COMPRESSION,
    MK_H2_BAD_FLOW,     /* flow control violated: window exceeded or overflowed */
    MK_H2_STREAM_ENDED, /* frames on closed streams */
    MK_H2_MANY_RESETS,  /* rapid reset: requests cancelled or malformed at a high rate */
    MK_H2_MANY_PINGS,
    MK_H2_MANY_SETTINGS,
    MK_H2_MANY_EMPTY,   /* empty frames */
    MK_H2_MANY_STREAMS, /* more than MAX_CONCURRENT_STREAMS */
    MK_H2_MANY_OTHERS,  /* PRIORITY and unknown frames */
    MK_H2_TINY_WINDOWS,
    MK_H2_LONG_HEAD, /* a header block that is too long, or has too many frames */
    MK_H2_SLOW,
    MK_H2_NO_MEMORY,
    MK_H2_REASONS
};
/* "protocol", "resets", ... */
extern const char *const mk_conn_manager_h2_reason_names[MK_H2_REASONS];

struct mk_counters {
    uint64_t accepted;    /* accepted connections */
    uint64_t dropped;     /* connections rejected because of a limit, or by an accept hook */
    uint64_t open;        /* open connections */
    uint64_t secured;     /* connections that have completed the TLS handshake */
    uint64_t unsecured;   /* connections that required TLS, but did not complete the handshake */
    uint64_t requests;    /* access-log entries */
    uint64_t by_class[6]; /* responses by first digit of the status; 0: no response started */
    uint64_t by_outcome[MK_OUTCOME_SHUTDOWN + 1];
    uint64_t sent;                    /* bytes accepted by sockets */
    uint64_t h2_ended[MK_H2_REASONS]; /* HTTP/2 connections closed with an error, by reason */
    uint64_t cold_reads;              /* reads of uncached file data in the background; see prefetch.h */

    uint64_t pulse; /* loop iterations; see event/loop.h */

    /* The request in progress, and the last 16 states of its connection, the latest in the lowest four
     * bits. */
    uint64_t moves;
    char line[MK_COUNTERS_LINE_MAX]; /* method and target, NUL-terminated */
};

#endif
