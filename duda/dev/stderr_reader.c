/* SPDX-License-Identifier: Apache-2.0 */
#include "stderr_reader.h"

#include "crash.h"
#include "symbolize.h"

#include <errno.h>
#include <unistd.h>

/* Limits a call to slightly more than the capacity of a pipe, so that a program that writes without pause
 * cannot block the caller. */
enum { LINE_LIMIT = 64 * 1024, CRASH_LIMIT = 256 * 1024, PIECE = 4096, PIECES = 32 };

void dev_stderr_reader_init(struct dev_stderr_reader *h, void (*on_line)(void *ctx, mk_str line),
                            void (*on_crash)(void *ctx), void *ctx)
{
    *h = (struct dev_stderr_reader){.on_line = on_line,
                                    .on_crash = on_crash,
                                    .ctx = ctx,
                                    .line = mk_buf_growing(LINE_LIMIT),
                                    .crash = mk_buf_growing(CRASH_LIMIT),
                                    .held = mk_buf_growing(CRASH_LIMIT)};
}

void dev_stderr_reader_free(struct dev_stderr_reader *h)
{
    mk_buf_free(&h->line);
    mk_buf_free(&h->crash);
    mk_buf_free(&h->held);
}

void dev_stderr_reader_reset(struct dev_stderr_reader *h)
{
    h->in_report = h->in_held = h->has_crashed = h->has_held = h->has_died = false;
    mk_buf_free(&h->line);
    h->line = mk_buf_growing(LINE_LIMIT);
}

void dev_stderr_reader_worker_died(struct dev_stderr_reader *h)
{
    h->has_crashed = h->has_crashed && !h->has_died;
    h->has_held = false;
    h->has_died = true;
}

/* Returns true if there may be more data. */
static bool read_pipe_chunk(int *fd, struct mk_buf *out)
{
    char buf[PIECE];
    ssize_t n;
    if (*fd < 0)
        return false;
    do
        n = read(*fd, buf, sizeof buf);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        mk_buf_add(out, mk_str_of(buf, (size_t)n));
    if (n == 0) {
        close(*fd);
        *fd = -1;
    }
    return n > 0;
}

void dev_stderr_reader_append_to(int *fd, struct mk_buf *out)
{
    for (unsigned i = 0; i < PIECES && read_pipe_chunk(fd, out); i++)
        continue;
}

void dev_stderr_reader_read_lines(int *fd, struct mk_buf *rest, void (*on_line)(void *ctx, mk_str line),
                                  void *ctx)
{
    size_t end;
    if (!rest->p)
        *rest = mk_buf_growing(2 * LINE_LIMIT);
    for (unsigned i = 0; i < PIECES && read_pipe_chunk(fd, rest); i++) {
        while ((end = mk_str_find(mk_buf_str(rest), '\n')) != MK_STR_NONE) {
            on_line(ctx, mk_str_of(rest->p, end));
            mk_buf_consume(rest, end + 1);
        }
        if (rest->len >= LINE_LIMIT) {
            on_line(ctx, mk_buf_str(rest));
            mk_buf_clear(rest);
        }
    }
    if (*fd < 0 && rest->len) {
        on_line(ctx, mk_buf_str(rest));
        mk_buf_clear(rest);
    }
}

static void finish_report(struct dev_stderr_reader *h)
{
    bool was_crash = h->in_report, was_held = h->in_held;
    h->in_report = h->in_held = false;
    if (was_crash)
        h->on_crash(h->ctx);
    if (was_held && h->on_stall)
        h->on_stall(h->ctx);
}

/* Returns true if the line belongs to a stall report. */
static bool parse_stall_line(struct dev_stderr_reader *h, mk_str line)
{
    bool begins = mk_str_starts(line, MK_STR(DUDA_BACKTRACE_STALL));
    if (!begins && !(h->in_held && mk_str_starts(line, MK_STR(DUDA_BACKTRACE_FRAME))))
        return false;
    if (begins) {
        finish_report(h);
        mk_buf_clear(&h->held);
        line = mk_str_skip(line, sizeof DUDA_BACKTRACE_STALL - 1);
    }
    h->in_held = h->has_held = true;
    mk_buf_add(&h->held, line);
    mk_buf_add_char(&h->held, '\n');
    return true;
}

static void parse_stderr_line(struct dev_stderr_reader *h, mk_str line)
{
    if (parse_stall_line(h, line))
        return;
    bool begins = mk_str_starts(line, MK_STR(DEV_CRASH_HEAD));
    bool continues = h->in_report && (mk_str_starts(line, MK_STR(DEV_CRASH_FRAME)) ||
                                      mk_str_starts(line, MK_STR(DEV_CRASH_RUNNING)));
    if (begins || continues) {
        if (begins)
            mk_buf_clear(&h->crash);
        h->in_held = false;
        h->in_report = h->has_crashed = true;
        h->has_died = false;
        mk_buf_add(&h->crash, line);
        mk_buf_add_char(&h->crash, '\n');
        return;
    }
    finish_report(h);
    if (!mk_str_eq(line, MK_STR(DEV_CRASH_END)))
        h->on_line(h->ctx, line);
}

static void parse_stderr_lines(struct dev_stderr_reader *h)
{
    size_t end;
    while ((end = mk_str_find(mk_buf_str(&h->line), '\n')) != MK_STR_NONE) {
        parse_stderr_line(h, mk_str_of(h->line.p, end));
        mk_buf_consume(&h->line, end + 1);
    }
    if (h->line.failed) {
        mk_buf_free(&h->line);
        h->line = mk_buf_growing(LINE_LIMIT);
    }
}

void dev_stderr_reader_read(struct dev_stderr_reader *h, int *fd)
{
    bool more = true;
    for (unsigned i = 0; i < PIECES && more; i++) {
        more = read_pipe_chunk(fd, &h->line);
        parse_stderr_lines(h);
    }
    if (*fd < 0)
        finish_report(h);
}

void dev_stderr_reader_format_crash(const struct dev_stderr_reader *h, struct mk_buf *out)
{
    const struct dev_error_page page = {.out = out};
    mk_str running = dev_symbolize_find_running(mk_buf_str(&h->crash));
    dev_symbolize_write_cause(out, mk_buf_str(&h->crash));
    if (running.p)
        mk_buf_addf(out, " in %.*s", MK_STR_ARG(running));
    mk_buf_add_char(out, '\n');
    dev_symbolize_write_stack(&page, mk_buf_str(&h->crash));
}

void dev_stderr_reader_format_stall(const struct dev_stderr_reader *h, struct mk_buf *out)
{
    const struct dev_error_page page = {.out = out};
    mk_str report = mk_buf_str(&h->held);
    mk_buf_add(out, mk_str_cut(&report, '\n'));
    mk_buf_add_char(out, '\n');
    dev_symbolize_write_stack(&page, report);
}
