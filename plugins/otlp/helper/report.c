/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1400 };

static const char letters[] = {
    [MK_LOG_ERROR] = 'E',
    [MK_LOG_WARN] = 'W',
    [MK_LOG_INFO] = 'I',
    [MK_LOG_DEBUG] = 'D',
};

/* Text from a collector may contain any bytes, but each message must be a single line. */
static void write_line(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            text[i] = ' ';
    text[len] = '\n';
    (void)!write(STDOUT_FILENO, text, len + 1);
}

void otlp_report_log(enum mk_log_level level, const char *fmt, ...)
{
    char line[LINE_MAX_BYTES + 4] = {letters[level], ' '};
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line + 2, LINE_MAX_BYTES, fmt, args);
    va_end(args);
    if (n >= 0)
        write_line(line, 2 + (size_t)(n < LINE_MAX_BYTES ? n : LINE_MAX_BYTES - 1));
}

void otlp_report_counters(uint64_t n_read, uint64_t n_exported, uint64_t n_lost)
{
    char line[96];
    int n = snprintf(line, sizeof line - 1, "C %" PRIu64 " %" PRIu64 " %" PRIu64, n_read, n_exported, n_lost);
    write_line(line, (size_t)n);
}
