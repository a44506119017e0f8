/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1400 };

static const char letters[] = {
    [MK_LOG_ERROR] = 'E',
    [MK_LOG_WARN] = 'W',
    [MK_LOG_INFO] = 'I',
    [MK_LOG_DEBUG] = 'D',
};

/* Text from an authority may contain any bytes, but each message must be a single line. */
static void sanitize_message(struct mk_buf *b)
{
    for (size_t i = 0; i < b->len; i++)
        if ((unsigned char)b->p[i] < ' ' || b->p[i] == 0x7f)
            b->p[i] = ' ';
}

static void write_message_line(struct mk_buf *b)
{
    sanitize_message(b);
    b->p[b->len++] = '\n'; /* the buffer has reserved space for it */
    (void)!write(STDOUT_FILENO, b->p, b->len);
}

static void write_text(char letter, const char *fmt, va_list args) MK_API_PRINTF(2, 0);

static void write_text(char letter, const char *fmt, va_list args)
{
    char text[LINE_MAX_BYTES], buf[LINE_MAX_BYTES + 8];
    struct mk_buf b = mk_buf_fixed(buf, sizeof buf - 1);
    (void)vsnprintf(text, sizeof text, fmt, args); /* truncated if it is too long */
    mk_buf_addf(&b, "%c %s", letter, text);
    write_message_line(&b);
}

void acme_report_log(enum mk_log_level level, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    write_text(letters[level], fmt, args);
    va_end(args);
}

void acme_report_delay(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    write_text('F', fmt, args);
    va_end(args);
}

void acme_report_next_run(uint64_t seconds)
{
    char buf[32];
    struct mk_buf b = mk_buf_fixed(buf, sizeof buf - 1);
    mk_buf_addf(&b, "N %" PRIu64, seconds);
    write_message_line(&b);
}

void acme_report_issued(void)
{
    char buf[8];
    struct mk_buf b = mk_buf_fixed(buf, sizeof buf - 1);
    mk_buf_add(&b, MK_STR("C 1"));
    write_message_line(&b);
}

void acme_report_due(const char *name)
{
    char buf[300];
    struct mk_buf b = mk_buf_fixed(buf, sizeof buf - 1);
    mk_buf_addf(&b, "R %s", name);
    if (!b.failed)
        write_message_line(&b);
}

static void set_error_text(struct acme_error *f, bool affects_all, const char *fmt, va_list args)
    MK_API_PRINTF(3, 0);

static void set_error_text(struct acme_error *f, bool affects_all, const char *fmt, va_list args)
{
    char text[sizeof f->text]; /* a copy, because the arguments may refer to f->text */
    (void)vsnprintf(text, sizeof text, fmt, args);
    memcpy(f->text, text, sizeof text);
    f->affects_all = affects_all;
}

bool acme_error_set(struct acme_error *f, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    set_error_text(f, false, fmt, args);
    va_end(args);
    return false;
}

bool acme_error_set_global(struct acme_error *f, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    set_error_text(f, true, fmt, args);
    va_end(args);
    return false;
}
