/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/report.h"

#include "conf/other_syntax.h"

#include <stdio.h>

enum { TEXT_MAX = 1024, SHOWN_BEFORE = 80, SHOWN = 160 };

void mk_conf_report_init(struct mk_conf_report *r, struct mk_arena *arena)
{
    *r = (struct mk_conf_report){.arena = arena};
}

void mk_conf_report_watch_arena(struct mk_conf_report *r, const struct mk_arena *built_in)
{
    r->no_memory = mk_conf_report_out_of_memory(r);
    r->watched = built_in;
}

bool mk_conf_report_out_of_memory(const struct mk_conf_report *r)
{
    return r->no_memory || r->arena->failed || (r->watched && r->watched->failed);
}

/* Truncates a message that does not fit, for example because it contains a long path. */
static MK_PRINTF(2, 0) mk_str format_message(struct mk_conf_report *r, const char *fmt, va_list args)
{
    char buf[TEXT_MAX];
    int len = vsnprintf(buf, sizeof buf, fmt, args);
    return mk_arena_copy(r->arena, mk_str_of(buf, mk_min(len < 0 ? 0 : (size_t)len, sizeof buf - 1)));
}

static mk_str copy_str(struct mk_conf_report *r, mk_str s)
{
    return s.p ? mk_arena_copy(r->arena, s) : s;
}

static void store_problem(struct mk_conf_report *r, const struct mk_conf_problem *problem)
{
    struct mk_conf_problem *p = mk_arena_alloc(r->arena, sizeof *p);
    if (!p)
        return;
    *p = *problem;
    p->at.file = copy_str(r, p->at.file);
    p->at.source = copy_str(r, p->at.source);
    p->hint = mk_str_from_c(mk_conf_other_syntax_hint(mk_conf_other_syntax_tail(p->at.source)));
    if (r->last)
        r->last->next = p;
    else
        r->first = p;
    r->last = r->open = p;
    r->n_kept++;
}

void mk_conf_report_addv(struct mk_conf_report *r, enum mk_conf_severity severity,
                         const struct mk_conf_source_pos *at, const char *fmt, va_list args)
{
    *(severity == MK_CONF_ERROR ? &r->n_errors : &r->n_warnings) += 1;
    r->open = NULL;
    if (r->n_kept < MK_CONF_REPORT_MAX)
        store_problem(r, &(struct mk_conf_problem){
                             .severity = severity, .at = *at, .text = format_message(r, fmt, args)});
}

void mk_conf_report_error(struct mk_conf_report *r, const struct mk_conf_source_pos *at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mk_conf_report_addv(r, MK_CONF_ERROR, at, fmt, args);
    va_end(args);
}

void mk_conf_report_warn(struct mk_conf_report *r, const struct mk_conf_source_pos *at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mk_conf_report_addv(r, MK_CONF_WARNING, at, fmt, args);
    va_end(args);
}

void mk_conf_report_hintv(struct mk_conf_report *r, const char *fmt, va_list args)
{
    if (r->open)
        r->open->hint = format_message(r, fmt, args);
}

void mk_conf_report_hint(struct mk_conf_report *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mk_conf_report_hintv(r, fmt, args);
    va_end(args);
}

void mk_conf_report_suggest(struct mk_conf_report *r, mk_str word)
{
    if (word.p)
        mk_conf_report_hint(r, "did you mean `%.*s`?", MK_CONF_REPORT_ARG(word));
}

mk_err mk_conf_report_result(const struct mk_conf_report *r)
{
    return mk_conf_report_out_of_memory(r) ? -ENOMEM : r->n_errors ? -EINVAL : 0;
}

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

/* Is it a UTF-8 continuation byte, which takes no column of its own? */
static bool is_utf8_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Replaces control characters: untrusted text must not control the terminal. */
static void append_sanitized(struct mk_buf *out, mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        mk_buf_add_char(out, is_control(s.p[i]) && s.p[i] != '\t' ? '?' : s.p[i]);
}

static void print_source_pos(const struct mk_conf_source_pos *at, struct mk_buf *out)
{
    if (at->file.len == 0)
        return;
    append_sanitized(out, at->file);
    mk_buf_add_char(out, ':');
    if (at->line)
        mk_buf_addf(out, "%u:", at->line);
    if (at->line && at->column)
        mk_buf_addf(out, "%u:", at->column);
    mk_buf_add_char(out, ' ');
}

/* Returns the line, or the part of a long line around the column. *before is the number of bytes that precede
 * the column in the returned text. */
static mk_str visible_part(const struct mk_conf_source_pos *at, size_t *before)
{
    size_t column = mk_min(at->column ? at->column - 1 : 0, at->source.len);
    size_t from = column > SHOWN ? column - SHOWN_BEFORE : 0;
    while (from < column && is_utf8_continuation(at->source.p[from]))
        from++;
    size_t to = mk_min(at->source.len, from + SHOWN);
    while (to < at->source.len && is_utf8_continuation(at->source.p[to]))
        to++;
    *before = column - from;
    return mk_str_skip(mk_str_first(at->source, to), from);
}

static void print_source_line(const struct mk_conf_source_pos *at, struct mk_buf *out)
{
    size_t before;
    mk_str part = visible_part(at, &before);
    mk_buf_add(out, MK_STR("    "));
    append_sanitized(out, part);
    mk_buf_add_char(out, '\n');
    if (!at->column)
        return;
    mk_buf_add(out, MK_STR("    "));
    for (size_t i = 0; i < before; i++)
        if (!is_utf8_continuation(part.p[i]))
            mk_buf_add_char(out, part.p[i] == '\t' ? '\t' : ' ');
    mk_buf_add(out, MK_STR("^\n"));
}

void mk_conf_report_print_one(const struct mk_conf_problem *p, struct mk_buf *out)
{
    print_source_pos(&p->at, out);
    mk_buf_add(out, p->severity == MK_CONF_ERROR ? MK_STR("error: ") : MK_STR("warning: "));
    append_sanitized(out, p->text);
    mk_buf_add_char(out, '\n');
    if (p->at.source.len)
        print_source_line(&p->at, out);
    if (p->hint.len) {
        mk_buf_add(out, MK_STR("    hint: "));
        append_sanitized(out, p->hint);
        mk_buf_add_char(out, '\n');
    }
}

void mk_conf_report_print(const struct mk_conf_report *r, struct mk_buf *out)
{
    for (const struct mk_conf_problem *p = r->first; p; p = p->next)
        mk_conf_report_print_one(p, out);
    mk_conf_report_print_omitted(r, out);
}

void mk_conf_report_print_omitted(const struct mk_conf_report *r, struct mk_buf *out)
{
    size_t more = r->n_errors + r->n_warnings - r->n_kept;
    if (more)
        mk_buf_addf(out, "and %zu more\n", more);
}
