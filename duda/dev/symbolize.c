/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize.h"

#include "crash.h"
#include "process.h"

#include <limits.h>
#include <monkey/mem.h>
#include <monkey/str.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FRAMES_SHOWN = 16, OUTPUT_MAX = 512 * 1024 };

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

/* ---- Source lines ---- */

enum { STACK_MAX = 64 };

struct stack_frame {
    struct dev_frame f;
    mk_str location; /* "FILE:LINE"; absent: unknown */
    bool is_resolved;
};

/* The frames to write, and the output of addr2line, to which they point. */
struct stack {
    struct stack_frame at[STACK_MAX];
    size_t n;
    struct mk_buf outputs[STACK_MAX];
    size_t n_outputs;
};

/* Runs addr2line, which prints "FUNCTION\nFILE:LINE\n" for each unresolved frame of the object. Returns false
 * if the program cannot be run. */
static bool run_addr2line(const char *program, const struct stack *s, mk_str object, struct mk_buf *output)
{
    struct dev_argv words;
    dev_argv_init(&words);
    dev_argv_add(&words, mk_str_from_c(program));
    dev_argv_add(&words, MK_STR("-C"));
    dev_argv_add(&words, MK_STR("-f"));
    dev_argv_add(&words, MK_STR("-e"));
    dev_argv_add(&words, object);
    for (size_t i = 0; i < s->n; i++) {
        const struct dev_frame *f = &s->at[i].f;
        /* All frames but the first are return addresses. The byte before such an address belongs to the call
         * instruction. */
        if (!s->at[i].is_resolved && mk_str_eq(f->object, object))
            dev_argv_addf(&words, "0x%llx", f->is_first || !f->offset ? f->offset : f->offset - 1);
    }
    mk_buf_clear(output);
    bool ok = dev_process_run(&words, output) == 0;
    dev_argv_free(&words);
    return ok;
}

/* Returns the next line that is not a message of addr2line about debug information. */
static mk_str next_output_line(mk_str *rest)
{
    static const char *const messages[] = {"addr2line: ", "BFD: ", "DWARF error"};
    mk_str line = MK_STR_NULL;
    for (bool skips = true; skips && rest->p;) {
        line = mk_str_cut(rest, '\n');
        skips = false;
        for (size_t i = 0; line.len && i < MK_LEN(messages); i++)
            skips = skips || memmem(line.p, line.len, messages[i], strlen(messages[i]));
    }
    return line;
}

/* Resolves all frames of one object with a single call, because reading the debug information of a library
 * may take a second. */
static void resolve_object(struct stack *s, mk_str object)
{
    struct mk_buf *output = &s->outputs[s->n_outputs++];
    *output = mk_buf_growing(OUTPUT_MAX);
    bool ok =
        run_addr2line("addr2line", s, object, output) || run_addr2line("llvm-addr2line", s, object, output);
    mk_str rest = ok ? mk_buf_str(output) : MK_STR_NULL;
    for (size_t i = 0; i < s->n; i++) {
        struct stack_frame *frame = &s->at[i];
        if (frame->is_resolved || !mk_str_eq(frame->f.object, object))
            continue;
        mk_str function = next_output_line(&rest);
        frame->location = next_output_line(&rest);
        frame->is_resolved = true;
        if (function.len && function.p[0] != '?')
            frame->f.symbol = function;
    }
}

/* Returns whether the developer can change the file, unlike the headers of a library. */
static bool is_own_source(mk_str path)
{
    return !mk_str_starts(path, MK_STR("/usr/")) && is_readable(path);
}

static void write_frame(const struct dev_error_page *p, const struct stack_frame *frame, bool *excerpted)
{
    const struct dev_frame *f = &frame->f;
    char text[512];
    mk_str path, symbol = mk_str_first(f->symbol.len ? f->symbol : MK_STR("?"), 200);
    uint64_t row = 0;
    bool known = frame->location.p && dev_symbolize_parse_location(frame->location, &path, &row);
    bool has_arguments = mk_str_find(symbol, '(') != MK_STR_NONE; /* a demangled name of C++ */
    snprintf(text, sizeof text, "in %.*s%s", MK_STR_ARG(symbol), f->symbol.len && !has_arguments ? "()" : "");
    if (known && !*excerpted && is_service_frame(f) && is_own_source(path)) {
        *excerpted = true;
        dev_error_page_add_excerpt(p, path, row, 0, mk_str_from_c(text));
        return;
    }
    struct mk_buf line = mk_buf_growing(8192);
    mk_buf_addf(&line, "%s, %.*s", text, MK_STR_ARG(known ? path : f->object));
    if (known)
        mk_buf_addf(&line, ":%llu", (unsigned long long)row);
    dev_error_page_add_text(p, mk_buf_str(&line));
    mk_buf_free(&line);
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

/* Selects the innermost frames, down to that of the handler. The first frame in the service's own code is
 * selected at any depth, because it shows the line to fix. */
static void select_frames(struct stack *s, mk_str report)
{
    struct dev_frame f = {.is_first =
                              !dev_symbolize_is_exit_report(report)}; /* exit report: return addresses only */
    bool in_service = false;
    for (unsigned n = 0; report.p && s->n < STACK_MAX && !(in_service && n >= FRAMES_SHOWN);) {
        if (!dev_symbolize_parse_frame(mk_str_cut(&report, '\n'), &f))
            continue;
        if (in_service && is_server_frame(&f))
            return;
        bool own = is_service_frame(&f);
        in_service = in_service || own;
        if (n++ < FRAMES_SHOWN || own)
            s->at[s->n++] = (struct stack_frame){.f = f};
        f.is_first = false;
    }
}

void dev_symbolize_write_stack(const struct dev_error_page *p, mk_str report)
{
    struct stack *s = mk_mem_zalloc(1, sizeof *s);
    bool excerpted = false;
    if (!s)
        return;
    select_frames(s, report);
    for (size_t i = 0; i < s->n; i++) {
        if (!s->at[i].is_resolved)
            resolve_object(s, s->at[i].f.object);
        write_frame(p, &s->at[i], &excerpted);
    }
    for (size_t i = 0; i < s->n_outputs; i++)
        mk_buf_free(&s->outputs[i]);
    mk_mem_free(s);
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
