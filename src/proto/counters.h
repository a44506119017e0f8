/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker counts, and the trail it leaves for whoever wonders what it died of. Lies in memory that the
 * master shares; only the worker writes. */
#ifndef MK_PROTO_COUNTERS_H
#define MK_PROTO_COUNTERS_H

#include "base/def.h"
#include "web/record.h"

enum { MK_TRAIL_LINE = 96 };

struct mk_counters {
    uint64_t accepted;    /* connections taken */
    uint64_t dropped;     /* connections refused: over a limit */
    uint64_t open;        /* connections now */
    uint64_t secured;     /* of them: agreed upon TLS, */
    uint64_t unsecured;   /* or should have and did not */
    uint64_t requests;    /* records made */
    uint64_t by_class[6]; /* responses by the first digit of their status; 0: none was begun */
    uint64_t by_ending[MK_ENDINGS];
    uint64_t sent;       /* bytes that sockets took */
    uint64_t cold_reads; /* times that a file had to be fetched from its disk first */

    /* The request being worked on, and the last 16 moves of its connection, the latest in the lowest four
     * bits. */
    uint64_t moves;
    char line[MK_TRAIL_LINE]; /* method and target, ended by NUL */
};

#endif
