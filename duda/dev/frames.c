/* SPDX-License-Identifier: Apache-2.0 */
#include "frames.h"

#include "child.h"
#include "crash.h"

#include <limits.h>
#include <monkey/str.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FRAMES_SHOWN = 16, ANSWER_MAX = 16 * 1024 };

bool dev_frames_read(mk_str line, struct dev_frame *f)
{
    static const mk_str begin = MK_STR_INIT(DEV_CRASH_FRAME);
    if (!mk_str_starts(line, begin))
        return false;
    line = mk_str_skip(line, begin.len);
    f->object = mk_str_word(&line);
    mk_str number = mk_str_word(&line);
    char room[32];
    snprintf(room, sizeof room, "%.*s", MK_STR_ARG(number));
    f->offset = strtoull(room, NULL, 16);
    f->symbol = mk_str_trim(line);
    return true;
}

/* "function\nfile:line\n" of an instruction; false if nothing can tell. */
static bool ask(const char *program, const struct dev_frame *f, struct mk_buf *answer)
{
    struct dev_words words;
    dev_words_init(&words);
    dev_words_add(&words, mk_str_from_c(program));
    dev_words_add(&words, MK_STR("-f"));
    dev_words_add(&words, MK_STR("-e"));
    dev_words_add(&words, f->object);
    /* Other frames are where their call returns to: the call is ahead of that. */
    dev_words_addf(&words, "0x%llx", f->is_first || !f->offset ? f->offset : f->offset - 1);
    mk_buf_clear(answer);
    bool ok = dev_child_run(&words, answer) == 0;
    dev_words_free(&words);
    return ok;
}

bool dev_frames_read_place(mk_str text, mk_str *path, uint64_t *row)
{
    mk_str word = mk_str_word(&text);
    size_t colon = mk_str_find_last(word, ':');
    if (colon == MK_STR_NONE || word.p[0] == '?')
        return false;
    *path = mk_str_first(word, colon);
    return mk_num_parse(mk_str_skip(word, colon + 1), row) && *row > 0;
}

/* Neither the libc nor the server: its source is here, and it is in an object of another name than theirs. */
static bool is_of_service(const struct dev_frame *f, mk_str path)
{
    char name[PATH_MAX];
    mk_str leaf = mk_str_skip(f->object, mk_str_find_last(f->object, '/') + 1);
    bool ours = mk_str_starts(leaf, MK_STR("monkey")) || mk_str_starts(leaf, MK_STR("lib"));
    int len = snprintf(name, sizeof name, "%.*s", MK_STR_ARG(path));
    return !ours && len > 0 && len < PATH_MAX && access(name, R_OK) == 0;
}

static void write_frame(const struct dev_page *p, const struct dev_frame *f, bool *excerpted)
{
    struct mk_buf answer = mk_buf_growing(ANSWER_MAX);
    char text[512];
    mk_str path, symbol = f->symbol;
    uint64_t row = 0;
    bool known = ask("addr2line", f, &answer) || ask("llvm-addr2line", f, &answer);
    mk_str rest = mk_buf_str(&answer), function = mk_str_cut(&rest, '\n');
    known = known && dev_frames_read_place(mk_str_cut(&rest, '\n'), &path, &row);
    if (known && function.len && function.p[0] != '?')
        symbol = function;
    if (!known)
        path = f->object;
    snprintf(text, sizeof text, "in %.*s%s", MK_STR_ARG(mk_str_first(symbol.len ? symbol : MK_STR("?"), 200)),
             symbol.len ? "()" : "");
    if (known && !*excerpted && is_of_service(f, path)) {
        *excerpted = true;
        dev_page_excerpt(p, path, row, 0, mk_str_from_c(text));
    } else {
        struct mk_buf line = mk_buf_growing(8192);
        mk_buf_addf(&line, "%s, %.*s", text, MK_STR_ARG(path));
        if (known)
            mk_buf_addf(&line, ":%llu", (unsigned long long)row);
        dev_page_text(p, mk_buf_str(&line));
        mk_buf_free(&line);
    }
    mk_buf_free(&answer);
}

/* Below the handler there is the server, which is not under development. */
static bool is_end(const struct dev_frame *f)
{
    return mk_str_eq(f->symbol, MK_STR("duda_run_enter")) ||
           mk_str_ends(f->object, MK_STR("/monkey-duda.so")) ||
           mk_str_ends(f->object, MK_STR("/monkey-duda-test"));
}

void dev_frames_write(const struct dev_page *p, mk_str report)
{
    struct dev_frame f = {.is_first = true};
    bool excerpted = false, in_service = false;
    for (unsigned n = 0; report.p && n < FRAMES_SHOWN;) {
        if (!dev_frames_read(mk_str_cut(&report, '\n'), &f))
            continue;
        if (in_service && is_end(&f))
            return;
        in_service = in_service || !is_end(&f);
        write_frame(p, &f, &excerpted);
        f.is_first = false;
        n++;
    }
}

/* Without the SIG, as glibc's sigabbrev_np() says it, which other C libraries lack. */
static const char *signal_name(uint64_t number)
{
    static const char *const names[] = {
        [SIGSEGV] = "SEGV", [SIGABRT] = "ABRT", [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
        [SIGILL] = "ILL",   [SIGTRAP] = "TRAP", [SIGSYS] = "SYS",   [SIGKILL] = "KILL",
        [SIGTERM] = "TERM", [SIGXCPU] = "XCPU", [SIGALRM] = "ALRM", [SIGPIPE] = "PIPE"};
    return number < sizeof names / sizeof *names && names[number] ? names[number] : "?";
}

void dev_frames_write_cause(struct mk_buf *out, mk_str report)
{
    static const mk_str begin = MK_STR_INIT(DEV_CRASH_HEAD);
    uint64_t number = 0;
    mk_str line = mk_str_cut(&report, '\n');
    line = mk_str_skip(line, begin.len);
    (void)mk_num_parse(mk_str_word(&line), &number);
    const char *name = number < 64 ? strsignal((int)number) : NULL;
    mk_buf_addf(out, "SIG%s (%s)", signal_name(number), name ? name : "?");
    line = mk_str_trim(line);
    if (line.len && !mk_str_eq(line, MK_STR("(nil)")))
        mk_buf_addf(out, " at address %.*s", MK_STR_ARG(line));
    else if (number == 11)
        mk_buf_add(out, MK_STR(" through a NULL pointer"));
}
