/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static bool shows_progress, line_is_shown;

/* Process names and client output may contain terminal escape sequences. */
void wr_message_sanitize(char *text)
{
    enum { FIRST = ' ', DELETE = 0x7f, C1_LEAD = 0xc2, C1_END = 0xa0 };
    unsigned char *all = (unsigned char *)text;
    for (size_t i = 0; all[i]; i++) {
        bool c1 = all[i] == C1_LEAD && all[i + 1] >= DELETE && all[i + 1] < C1_END;
        if (c1)
            all[i + 1] = '?';
        if (c1 || all[i] == DELETE || (all[i] < FIRST && all[i] != '\n' && all[i] != '\t'))
            all[i] = '?';
    }
}

static MK_PRINTF(1, 0) void print_sanitized(const char *fmt, va_list args)
{
    static char buf[8192];
    if (vsnprintf(buf, sizeof buf, fmt, args) < 0)
        return;
    wr_message_sanitize(buf);
    fputs(buf, stderr);
}

static MK_PRINTF(1, 0) void print_message(const char *fmt, va_list args)
{
    wr_message_progress_end();
    (void)fflush(stdout);
    fputs("wr: ", stderr);
    print_sanitized(fmt, args);
    fputc('\n', stderr);
}

void wr_message(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_message(fmt, args);
    va_end(args);
}

bool wr_message_error(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_message(fmt, args);
    va_end(args);
    return false;
}

void wr_message_init(bool quiet)
{
    shows_progress = !quiet && isatty(STDERR_FILENO);
}

void wr_message_progress(const char *fmt, ...)
{
    va_list args;
    if (!shows_progress)
        return;
    va_start(args, fmt);
    fputs("\r\033[K", stderr);
    print_sanitized(fmt, args);
    va_end(args);
    (void)fflush(stderr);
    line_is_shown = true;
}

void wr_message_progress_end(void)
{
    if (line_is_shown)
        fputs("\r\033[K", stderr);
    line_is_shown = false;
}
