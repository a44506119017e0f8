/* SPDX-License-Identifier: Apache-2.0 */
/* A line for each record, in the formats that people and programs read. What a client sent never ends a line,
 * closes a quote or reaches a terminal as it is. */
#ifndef MK_SERVER_ACCESSLOG_H
#define MK_SERVER_ACCESSLOG_H

#include "base/buf.h"
#include "web/record.h"

enum mk_access_format {
    MK_ACCESS_COMBINED, /* the Combined Log Format of Apache httpd */
    MK_ACCESS_JSON,     /* an object a line */
    MK_ACCESS_SHORT,    /* for people who watch */
};

/* The text of the current second, formatted once. */
struct mk_access_clock {
    int64_t written;
    char local[32];  /* 20/Nov/2026:10:00:00 +0000 */
    char iso[32];    /* 2026-11-20T10:00:00+0000 */
    char of_day[12]; /* 10:00:00 */
};

enum { MK_ACCESS_LINE = 4096 };

/* Appends the line with its end. A longer one is cut inside of its texts, never in its form. */
void mk_accesslog_write(struct mk_buf *out, enum mk_access_format format, const struct mk_record *record,
                        struct mk_access_clock *clock);

#endif
