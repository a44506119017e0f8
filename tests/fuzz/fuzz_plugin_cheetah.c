/* SPDX-License-Identifier: Apache-2.0 */
/* Any text that Cheetah displays is harmless: it cannot control a terminal, escaping twice equals escaping
 * once, and JSON stays JSON throughout. */
#include "base/assert.h"
#include "cheetah/escape.c"
#include "cheetah/table_writer.c"

enum { ROOM = 1 << 22 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_bytes(mk_str s, bool json)
{
    for (size_t i = 0; i < s.len; i++) {
        mk_str at = mk_str_first(mk_str_skip(s, i), 3);
        unsigned char c = (unsigned char)s.p[i], next = at.len > 1 ? (unsigned char)at.p[1] : 0;
        MK_ASSERT((c >= 0x20 || (c == '\t' && !json)) && c != 0x7f);
        MK_ASSERT(c != 0xc2 || next >= 0xa0);            /* other control characters */
        for (char last = '\xaa'; last <= '\xae'; last++) /* bidirectional controls */
            MK_ASSERT(!mk_str_eq(at, mk_str_of((const char[]){'\xe2', '\x80', last}, 3)));
    }
}

/* Checks a JSON string including its quotes. */
static void check_string(mk_str s)
{
    size_t i = 1;
    MK_ASSERT(s.len >= 2 && s.p[0] == '"');
    while (i < s.len && s.p[i] != '"') {
        if (s.p[i] == '\\') {
            MK_ASSERT(i + 1 < s.len && strchr("\"\\/bfnrtu", s.p[i + 1]));
            for (size_t k = 2; s.p[i + 1] == 'u' && k < 6; k++)
                MK_ASSERT(i + k < s.len && mk_char_hex(s.p[i + k]) >= 0);
            i += s.p[i + 1] == 'u' ? 4 : 0;
            i++;
        }
        i++;
    }
    MK_ASSERT(i == s.len - 1);
}

static void check_safe(mk_str s)
{
    struct mk_buf once = mk_buf_growing(ROOM), twice = mk_buf_growing(ROOM);
    cheetah_escape_append(&once, s);
    cheetah_escape_append(&twice, mk_buf_str(&once));
    if (!once.failed && !twice.failed) {
        check_bytes(mk_buf_str(&once), false);
        MK_ASSERT(mk_str_eq(mk_buf_str(&once), mk_buf_str(&twice)));
    }
    mk_buf_free(&once);
    mk_buf_free(&twice);
}

static void check_cell(mk_str s, bool json)
{
    static const struct cheetah_column columns[] = {{"n", -10}};
    struct mk_buf out = mk_buf_growing(ROOM), safe = mk_buf_growing(ROOM);
    struct cheetah_table_writer sheet = {.out = &out, .columns = columns, .n = 1, .json = json};
    cheetah_table_cell_text(&sheet, s);
    mk_str line = mk_buf_str(&out), rest = line;
    MK_ASSERT(mk_str_ends(line, MK_STR("\n")));
    line = mk_str_cut(&rest, '\n');
    MK_ASSERT(rest.len == 0);
    check_bytes(line, true);
    cheetah_escape_append(&safe, line);
    MK_ASSERT(mk_str_eq(mk_buf_str(&safe), line));
    if (json && !mk_str_eq(line, MK_STR("{\"n\":null}")))
        check_string(mk_str_first(mk_str_skip(line, 5), line.len - 6));
    mk_buf_free(&out);
    mk_buf_free(&safe);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str s = mk_str_of((const char *)data, size);
    check_safe(s);
    check_cell(s, false);
    check_cell(s, true);
    return 0;
}
