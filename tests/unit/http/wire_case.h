/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the wire tests of tests/wire; the README there describes the format. */
#ifndef MK_UNIT_HTTP_WIRE_CASE_H
#define MK_UNIT_HTTP_WIRE_CASE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/num.h"
#include "unit/test.h"

enum { WIRE_LINES_MAX = 128, WIRE_TEXT_MAX = 1 << 20 };

/* Lines of arbitrary bytes. */
struct wire_lines {
    struct mk_buf at[WIRE_LINES_MAX];
    size_t n;
};

struct wire_case {
    char name[128];
    struct mk_buf bytes;
    struct wire_lines expect;
};

static inline struct mk_buf *wire_lines_add(struct wire_lines *lines)
{
    assert_true(lines->n < WIRE_LINES_MAX);
    lines->at[lines->n] = mk_buf_growing(WIRE_TEXT_MAX);
    return &lines->at[lines->n++];
}

static inline void wire_lines_free(struct wire_lines *lines)
{
    while (lines->n)
        mk_buf_free(&lines->at[--lines->n]);
}

static inline void wire_case_free(struct wire_case *c)
{
    mk_buf_free(&c->bytes);
    wire_lines_free(&c->expect);
}

static void wire_decode(struct mk_buf *out, mk_str *text, bool inside);

/* Decodes the repetition N:text} */
static inline void wire_decode_repeat(struct mk_buf *out, mk_str *text)
{
    uint64_t n = 0;
    assert_true(mk_num_parse(mk_str_cut(text, ':'), &n));
    struct mk_buf piece = mk_buf_growing(WIRE_TEXT_MAX);
    wire_decode(&piece, text, true);
    while (n--)
        mk_buf_add(out, mk_buf_str(&piece));
    mk_buf_free(&piece);
}

/* Decodes the character after a backslash. */
static inline void wire_decode_escape(struct mk_buf *out, mk_str *text)
{
    static const char from[] = "rnt\\", to[] = "\r\n\t\\";
    assert_true(text->len > 0);
    char c = text->p[0];
    *text = mk_str_skip(*text, 1);
    if (c == '{') {
        wire_decode_repeat(out, text);
    } else if (c == 'x') {
        int high = text->len >= 2 ? mk_char_hex(text->p[0]) : -1;
        int low = text->len >= 2 ? mk_char_hex(text->p[1]) : -1;
        assert_true(high >= 0 && low >= 0);
        mk_buf_add_char(out, (char)(high << 4 | low));
        *text = mk_str_skip(*text, 2);
    } else {
        const char *found = strchr(from, c);
        if (!found || !c)
            fail_msg("an unknown escape: \\%c", c);
        else
            mk_buf_add_char(out, to[found - from]);
    }
}

/* Decodes up to the end of the text or, inside a repetition, up to its closing brace. */
static inline void wire_decode(struct mk_buf *out, mk_str *text, bool inside)
{
    while (text->len) {
        char c = text->p[0];
        *text = mk_str_skip(*text, 1);
        if (inside && c == '}')
            return;
        if (c == '\\')
            wire_decode_escape(out, text);
        else
            mk_buf_add_char(out, c);
    }
    assert_false(inside);
}

static inline mk_str wire_read_file(const char *name, char *buffer, size_t cap)
{
    char path[4096];
    const char *tests = getenv("MK_TESTS_DIR");
    snprintf(path, sizeof path, "%s/wire/%s", tests ? tests : "tests", name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s cannot be read", path);
    size_t len = fread(buffer, 1, cap, f);
    fclose(f);
    assert_true(len > 0 && len < cap);
    return mk_str_of(buffer, len);
}

static inline bool wire_is_ignored(mk_str line)
{
    return line.len == 0 || line.p[0] == '#';
}

/* Reads the next test case of a file's text; returns false at its end. */
static inline bool wire_case_next(mk_str *file, struct wire_case *c)
{
    mk_str mark = MK_STR("=== "), line = MK_STR("");
    while (file->p && wire_is_ignored(line))
        line = mk_str_cut(file, '\n');
    if (wire_is_ignored(line))
        return false;
    assert_true(mk_str_starts(line, mark));
    memset(c, 0, sizeof *c);
    snprintf(c->name, sizeof c->name, "%.*s", MK_STR_ARG(mk_str_skip(line, mark.len)));
    c->bytes = mk_buf_growing(WIRE_TEXT_MAX);
    bool expecting = false;
    while (file->p && !mk_str_starts(*file, mark)) {
        line = mk_str_cut(file, '\n');
        if (wire_is_ignored(line))
            continue;
        if (line.p[line.len - 1] == ' ')
            fail_msg("%s: a line ends with a blank", c->name);
        if (mk_str_eq(line, MK_STR("--- expect")))
            expecting = true;
        else
            wire_decode(expecting ? wire_lines_add(&c->expect) : &c->bytes, &line, false);
    }
    assert_true(expecting && c->expect.n > 0);
    return true;
}

#endif
