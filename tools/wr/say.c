/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static bool shows_progress, line_is_shown;

static void say(const char *fmt, va_list args)
{
    wr_say_progress_end();
    (void)fflush(stdout);
    fputs("wr: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
}

void wr_say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(fmt, args);
    va_end(args);
}

bool wr_say_error(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(fmt, args);
    va_end(args);
    return false;
}

void wr_say_init(bool quiet)
{
    shows_progress = !quiet && isatty(STDERR_FILENO);
}

void wr_say_progress(const char *fmt, ...)
{
    va_list args;
    if (!shows_progress)
        return;
    va_start(args, fmt);
    fputs("\r\033[K", stderr);
    vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fflush(stderr);
    line_is_shown = true;
}

void wr_say_progress_end(void)
{
    if (line_is_shown)
        fputs("\r\033[K", stderr);
    line_is_shown = false;
}
