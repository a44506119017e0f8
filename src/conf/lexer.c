/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/lexer.h"

#include <stdio.h>

#include "conf/io.h"

void mk_conf_lexer_init(struct mk_conf_lexer *l, mk_str file, mk_str text, struct mk_conf_report *report)
{
    const mk_str mark = MK_STR("\xef\xbb\xbf");
    *l = (struct mk_conf_lexer){.rest = text.p ? text : MK_STR(""), .at = {.file = file}, .report = report};
    if (mk_str_starts(l->rest, mark))
        l->rest = mk_str_skip(l->rest, mark.len);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static size_t leading_blanks(mk_str s)
{
    size_t n = 0;
    while (n < s.len && is_blank(s.p[n]))
        n++;
    return n;
}

static struct mk_conf_source_pos pos_at(const struct mk_conf_lexer *l, const char *p)
{
    struct mk_conf_source_pos at = l->at;
    at.column = (unsigned)(p - at.source.p) + 1;
    return at;
}

/* Reads the next line of the file, without its line end and trailing blanks. */
static void next_source_line(struct mk_conf_lexer *l)
{
    mk_str line = mk_str_cut(&l->rest, '\n');
    if (line.len && line.p[line.len - 1] == '\r')
        line.len--;
    while (line.len && is_blank(line.p[line.len - 1]))
        line.len--;
    l->at.line++;
    l->at.source = line;
}

static bool check_bytes(struct mk_conf_lexer *l, mk_str line)
{
    if (line.len > MK_CONF_LINE_MAX) {
        mk_conf_report_error(l->report, &l->at, "the line has %zu bytes; at most %d are allowed", line.len,
                             MK_CONF_LINE_MAX);
        return false;
    }
    for (size_t i = 0; i < line.len; i++) {
        unsigned char c = (unsigned char)line.p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            struct mk_conf_source_pos at = pos_at(l, line.p + i);
            mk_conf_report_error(l->report, &at,
                                 "control byte 0x%02x: only printable text and tabs are allowed", c);
            return false;
        }
    }
    return true;
}

/* Formats an indent for messages: "4 spaces". */
static const char *describe_indent(mk_str indent, char buf[64])
{
    bool tabs = mk_str_find(indent, '\t') != MK_STR_NONE, spaces = mk_str_find(indent, ' ') != MK_STR_NONE;
    const char *what = tabs && spaces ? "tabs and spaces" : tabs ? "tab" : "space";
    snprintf(buf, 64, "%zu %s%s", indent.len, what, tabs != spaces && indent.len > 1 ? "s" : "");
    return buf;
}

static void check_indent(struct mk_conf_lexer *l, mk_str indent)
{
    char found[64], expected[64];
    struct mk_conf_source_pos at = pos_at(l, indent.p + indent.len);
    if (l->indent.p && mk_str_eq(indent, l->indent))
        return;
    if (l->indent.p) {
        mk_conf_report_error(l->report, &at, "the indent is %s: expected %s, as on line %u",
                             describe_indent(indent, found), describe_indent(l->indent, expected),
                             l->indent_line);
        if (mk_str_starts(indent, l->indent))
            mk_conf_report_hint(l->report, "entries cannot be nested");
    } else if (mk_str_find(indent, '\t') != MK_STR_NONE && mk_str_find(indent, ' ') != MK_STR_NONE) {
        mk_conf_report_error(l->report, &at, "the indent mixes tabs and spaces: expected one of them");
    } else {
        l->indent = indent;
        l->indent_line = l->at.line;
    }
}

static bool is_dashes(mk_str s)
{
    size_t n = 0;
    while (n < s.len && s.p[n] == '-')
        n++;
    return n == s.len && n >= 3;
}

static void split_words(const struct mk_conf_lexer *l, mk_str s, struct mk_conf_line *out)
{
    out->rest = s;
    out->word = mk_str_word(&out->rest);
    out->rest = mk_str_skip(out->rest, leading_blanks(out->rest));
    out->at = pos_at(l, out->word.p);
    out->rest_column = pos_at(l, out->rest.p).column;
}

/* Is the line an indented section header or directive? The syntax of an entry allows such a line, but it is a
 * mistake. */
static bool is_misplaced_header(mk_str s)
{
    mk_str rest = s, word = mk_str_word(&rest);
    return (s.p[0] == '[' && s.p[s.len - 1] == ']') || mk_str_eq_nocase(word, MK_STR("@INCLUDE")) ||
           mk_str_eq_nocase(word, MK_STR("@SET"));
}

static bool lex_indented(struct mk_conf_lexer *l, size_t indent_len, struct mk_conf_line *out)
{
    mk_str s = mk_str_skip(l->at.source, indent_len);
    if (is_dashes(s))
        return false;
    if (is_misplaced_header(s)) {
        struct mk_conf_source_pos at = pos_at(l, s.p);
        mk_conf_report_error(l->report, &at, "`%.*s` must begin in the first column", MK_CONF_REPORT_ARG(s));
        out->kind = MK_CONF_LINE_SECTION;
        out->word = MK_STR_NULL;
        return s.p[0] == '[';
    }
    check_indent(l, mk_str_first(l->at.source, indent_len));
    out->kind = MK_CONF_LINE_ENTRY;
    split_words(l, s, out);
    return true;
}

static void check_after_section(struct mk_conf_lexer *l, mk_str after)
{
    mk_str text = mk_str_trim(after);
    if (text.len == 0)
        return;
    struct mk_conf_source_pos at = pos_at(l, text.p);
    mk_conf_report_error(l->report, &at, "unexpected text after `]`");
    if (text.p[0] == '#')
        mk_conf_report_hint(l->report, "write the comment on a line of its own");
}

static void lex_section(struct mk_conf_lexer *l, struct mk_conf_line *out)
{
    mk_str s = mk_str_skip(l->at.source, 1);
    size_t close = mk_str_find(s, ']');
    out->kind = MK_CONF_LINE_SECTION;
    out->at = pos_at(l, l->at.source.p);
    out->word = mk_str_trim(mk_str_first(s, close));
    if (close == MK_STR_NONE)
        mk_conf_report_error(l->report, &out->at, "a section name must be closed by `]`");
    else
        check_after_section(l, mk_str_skip(s, close + 1));
    if (out->word.len == 0 && close != MK_STR_NONE)
        mk_conf_report_error(l->report, &out->at, "a section must have a name");
    if (out->word.len == 0)
        out->word.p = NULL;
}

static void report_missing_indent(struct mk_conf_lexer *l)
{
    struct mk_conf_source_pos at = pos_at(l, l->at.source.p);
    char buf[64];
    mk_conf_report_error(l->report, &at,
                         "expected `[SECTION]`, `@INCLUDE`, `@SET`, a comment or an indented entry");
    if (l->indent.p)
        mk_conf_report_hint(l->report, "indent the entry by %s, as on line %u",
                            describe_indent(l->indent, buf), l->indent_line);
    else
        mk_conf_report_hint(l->report, "indent entries, for example by 4 spaces");
}

/* Classifies a line. False: the line is blank, a comment, a row of dashes, or invalid. */
static bool lex_line(struct mk_conf_lexer *l, struct mk_conf_line *out)
{
    mk_str line = l->at.source;
    size_t blanks = leading_blanks(line);
    if (blanks == line.len || line.p[blanks] == '#')
        return false;
    if (blanks > 0)
        return lex_indented(l, blanks, out);
    if (line.p[0] == '[') {
        lex_section(l, out);
        return true;
    }
    if (line.p[0] != '@') {
        report_missing_indent(l);
        return false;
    }
    out->kind = MK_CONF_LINE_DIRECTIVE;
    split_words(l, line, out);
    return true;
}

bool mk_conf_lexer_next(struct mk_conf_lexer *l, struct mk_conf_line *out)
{
    *out = (struct mk_conf_line){.kind = MK_CONF_LINE_ENTRY};
    while (l->rest.p) {
        next_source_line(l);
        out->at = l->at;
        if (check_bytes(l, l->at.source) && lex_line(l, out))
            return true;
    }
    return false;
}
