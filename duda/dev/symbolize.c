/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize.h"

#include "crash.h"
#include "process.h"

#include <limits.h>
#include <monkey/str.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FRAMES_SHOWN = 16, OUTPUT_MAX = 16 * 1024 };

bool dev_symbolize_parse_frame(mk_str line, struct dev_frame *f)
{
    static const mk_str begin = MK_STR_INIT(DEV_CRASH_FRAME);
    if (!mk_str_starts(line, begin))
        return false;
    line = mk_str_skip(line, begin.len);
    f->object = mk_str_word(&line);
    mk_str number = mk_str_word(&line);
    char buf[32];
    snprintf(buf, sizeof buf, "%.*s", MK_STR_ARG(number));
    f->offset = strtoull(buf, NULL, 16);
    f->symbol = mk_str_trim(line);
    return true;
}

/* Gets "function\nfile:line\n" of an instruction. Returns false if the program cannot resolve the address. */
static bool run_addr2line(const char *program, const struct dev_frame *f, struct mk_buf *output)
{
    struct dev_argv words;
    dev_argv_init(&words);
    dev_argv_add(&words, mk_str_from_c(program));
    dev_argv_add(&words, MK_STR("-f"));
    dev_argv_add(&words, MK_STR("-e"));
    dev_argv_add(&words, f->object);
    /* All other frames are return addresses: subtracts one to get the call instruction. */
    dev_argv_addf(&words, "0x%llx", f->is_first || !f->offset ? f->offset : f->offset - 1);
    mk_buf_clear(output);
    bool ok = dev_process_run(&words, output) == 0;
    dev_argv_free(&words);
    return ok;
}

bool dev_symbolize_parse_location(mk_str text, mk_str *path, uint64_t *row)
{
    mk_str word = mk_str_word(&text);
    size_t colon = mk_str_find_last(word, ':');
    if (colon == MK_STR_NONE || word.p[0] == '?')
        return false;
    *path = mk_str_first(word, colon);
    return mk_num_parse(mk_str_skip(word, colon + 1), row) && *row > 0;
}

/* Returns whether the frame is in the object of a service, not of the system or the server. */
static bool is_service_frame(const struct dev_frame *f)
{
    static const mk_str others[] = {MK_STR_INIT("monkey"), MK_STR_INIT("lib"), MK_STR_INIT("ld-"),
                                    MK_STR_INIT("linux-"), MK_STR_INIT("?")};
    mk_str leaf = mk_str_skip(f->object, mk_str_find_last(f->object, '/') + 1);
    for (size_t i = 0; i < MK_LEN(others); i++)
        if (mk_str_starts(leaf, others[i]))
            return false;
    return leaf.len > 0;
}

static bool is_readable(mk_str path)
{
    char name[PATH_MAX];
    int len = snprintf(name, sizeof name, "%.*s", MK_STR_ARG(path));
    return len > 0 && len < PATH_MAX && access(name, R_OK) == 0;
}

static void write_frame(const struct dev_error_page *p, const struct dev_frame *f, bool *excerpted)
{
    struct mk_buf output = mk_buf_growing(OUTPUT_MAX);
    char text[512];
    mk_str path, symbol = f->symbol;
    uint64_t row = 0;
    bool known = run_addr2line("addr2line", f, &output) || run_addr2line("llvm-addr2line", f, &output);
    mk_str rest = mk_buf_str(&output), function = mk_str_cut(&rest, '\n');
    known = known && dev_symbolize_parse_location(mk_str_cut(&rest, '\n'), &path, &row);
    if (known && function.len && function.p[0] != '?')
        symbol = function;
    if (!known)
        path = f->object;
    snprintf(text, sizeof text, "in %.*s%s", MK_STR_ARG(mk_str_first(symbol.len ? symbol : MK_STR("?"), 200)),
             symbol.len ? "()" : "");
    if (known && !*excerpted && is_service_frame(f) && is_readable(path)) {
        *excerpted = true;
        dev_error_page_add_excerpt(p, path, row, 0, mk_str_from_c(text));
    } else {
        struct mk_buf line = mk_buf_growing(8192);
        mk_buf_addf(&line, "%s, %.*s", text, MK_STR_ARG(path));
        if (known)
            mk_buf_addf(&line, ":%llu", (unsigned long long)row);
        dev_error_page_add_text(p, mk_buf_str(&line));
        mk_buf_free(&line);
    }
    mk_buf_free(&output);
}

/* Returns whether the frame belongs to the server, which has called the handler. */
static bool is_server_frame(const struct dev_frame *f)
{
    return mk_str_ends(f->object, MK_STR("/monkey-duda.so")) ||
           mk_str_ends(f->object, MK_STR("/monkey-duda-test"));
}

mk_str dev_symbolize_find_running(mk_str report)
{
    static const mk_str begin = MK_STR_INIT(DEV_CRASH_RUNNING);
    while (report.len) {
        mk_str line = mk_str_cut(&report, '\n');
        if (mk_str_starts(line, begin))
            return mk_str_skip(line, begin.len);
    }
    return MK_STR_NULL;
}

bool dev_symbolize_is_exit_report(mk_str report)
{
    return mk_str_starts(report, MK_STR(DEV_CRASH_HEAD DEV_CRASH_EXIT));
}

/* Writes the innermost frames, down to that of the handler. The first frame in the service's own code is
 * written at any depth, because it shows the line to fix. */
void dev_symbolize_write_stack(const struct dev_error_page *p, mk_str report)
{
    struct dev_frame f = {.is_first =
                              !dev_symbolize_is_exit_report(report)}; /* exit report: return addresses only */
    bool excerpted = false, in_service = false;
    for (unsigned n = 0; report.p && !(in_service && n >= FRAMES_SHOWN);) {
        if (!dev_symbolize_parse_frame(mk_str_cut(&report, '\n'), &f))
            continue;
        if (in_service && is_server_frame(&f))
            return;
        bool own = is_service_frame(&f);
        in_service = in_service || own;
        if (n++ < FRAMES_SHOWN || own)
            write_frame(p, &f, &excerpted);
        f.is_first = false;
    }
}

/* Returns the name without "SIG", like sigabbrev_np() of glibc, which other C libraries lack. */
static const char *signal_name(uint64_t number)
{
    static const char *const names[] = {
        [SIGSEGV] = "SEGV", [SIGABRT] = "ABRT", [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
        [SIGILL] = "ILL",   [SIGTRAP] = "TRAP", [SIGSYS] = "SYS",   [SIGKILL] = "KILL",
        [SIGTERM] = "TERM", [SIGXCPU] = "XCPU", [SIGALRM] = "ALRM", [SIGPIPE] = "PIPE"};
    return number < sizeof names / sizeof *names && names[number] ? names[number] : "?";
}

static void write_exit_cause(struct mk_buf *out, mk_str rest)
{
    mk_str code = mk_str_word(&rest);
    mk_buf_addf(out, "exit(%.*s) ended the worker with all its requests,", MK_STR_ARG(code));
}

void dev_symbolize_write_cause(struct mk_buf *out, mk_str report)
{
    uint64_t number = 0;
    mk_str line = mk_str_skip(mk_str_cut(&report, '\n'), sizeof DEV_CRASH_HEAD - 1);
    mk_str word = mk_str_word(&line);
    if (mk_str_eq(word, MK_STR(DEV_CRASH_EXIT))) {
        write_exit_cause(out, line);
        return;
    }
    (void)mk_num_parse(word, &number);
    const char *name = number < 64 ? strsignal((int)number) : NULL;
    mk_str address = mk_str_word(&line);
    mk_buf_addf(out, "SIG%s (%s)", signal_name(number), name ? name : "?");
    if (mk_str_eq(mk_str_trim(line), MK_STR(DEV_CRASH_OVERFLOW)))
        mk_buf_add(out, MK_STR(" because its stack is full: give the route a larger `.stack`"));
    else if (address.len && !mk_str_eq(address, MK_STR("(nil)")))
        mk_buf_addf(out, " at address %.*s", MK_STR_ARG(address));
    else if (number == 11)
        mk_buf_add(out, MK_STR(" through a NULL pointer"));
}
