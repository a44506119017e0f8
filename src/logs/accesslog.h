/* SPDX-License-Identifier: Apache-2.0 */
/* Formats one access-log line per record. Text from clients is escaped: it cannot insert a line break,
 * close a quote or send control characters to a terminal. */
#ifndef MK_LOGS_ACCESSLOG_H
#define MK_LOGS_ACCESSLOG_H

#include "base/buf.h"
#include "web/access_record.h"

enum mk_access_format {
    MK_ACCESS_COMBINED, /* the Combined Log Format of Apache httpd */
    MK_ACCESS_JSON,     /* one object per line */
    MK_ACCESS_SHORT,    /* compact, for a terminal */
};

/* The current time as text, formatted once a second. */
struct mk_access_clock {
    int64_t written;
    char local[32];  /* 20/Nov/2026:10:00:00 +0000 */
    char iso[32];    /* 2026-11-20T10:00:00+0000 */
    char of_day[12]; /* 10:00:00 */
};

enum { MK_ACCESS_LINE = 4096 };

/* Appends the line and its newline. A line that is too long is truncated inside its strings, so that log
 * parsers can read it. */
void mk_accesslog_write(struct mk_buf *out, enum mk_access_format format,
                        const struct mk_access_record *record, struct mk_access_clock *clock);

#endif
