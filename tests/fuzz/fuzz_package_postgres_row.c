/* SPDX-License-Identifier: Apache-2.0 */
/* Text that is quoted as a constant or written to a COPY row is decoded unchanged: nothing in it ends the
 * constant, the cell or the row. Values of type bytea are decoded from both formats, hex and escape. */
#include <postgres/text_format.h>

#include "base/assert.h"

enum { TEXT_MAX = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_constant(mk_str in)
{
    struct mk_buf out = mk_buf_growing(2 * TEXT_MAX + 8), back = mk_buf_growing(TEXT_MAX);
    postgres_quote_literal(&out, in);
    bool has_nul = in.len && memchr(in.p, 0, in.len);
    mk_str input = mk_buf_str(&out);
    MK_ASSERT(out.failed == has_nul);
    if (!has_nul) {
        MK_ASSERT(mk_str_starts(input, MK_STR("E'")) && input.p[input.len - 1] == '\'');
        for (size_t i = 2; i < input.len - 1; i++) {
            if (input.p[i] == '\'' || input.p[i] == '\\') {
                MK_ASSERT(input.p[i] == input.p[i + 1] && i + 2 < input.len);
                i++;
            }
            mk_buf_add_char(&back, input.p[i]);
        }
        MK_ASSERT(mk_str_eq(mk_buf_str(&back), in));
    }
    mk_buf_free(&out);
    mk_buf_free(&back);
}

/* Decodes the cell as COPY FROM does, and checks that the result equals `in`. */
static void check_cell(mk_str cell, mk_str in)
{
    static const char letters[] = "\\nrtbfv", meant[] = "\\\n\r\t\b\f\v";
    struct mk_buf back = mk_buf_growing(TEXT_MAX);
    for (size_t i = 0; i < cell.len; i++) {
        const char *at = cell.p[i] == '\\' && i + 1 < cell.len ? strchr(letters, cell.p[i + 1]) : NULL;
        MK_ASSERT(cell.p[i] != '\\' || (at && cell.p[i + 1]));
        mk_buf_add_char(&back, at ? meant[at - letters] : cell.p[i]);
        i += at != NULL;
    }
    MK_ASSERT(mk_str_eq(mk_buf_str(&back), in));
    mk_buf_free(&back);
}

static void check_row(mk_str in)
{
    const struct duda_sql_value row[] = {duda_sql_text(in), duda_sql_blob(in), duda_sql_text(in)};
    struct mk_buf out = mk_buf_growing(8 * TEXT_MAX), bytes = mk_buf_growing(TEXT_MAX);
    postgres_copy_row_format(&out, row, MK_LEN(row));
    mk_str line = mk_buf_str(&out), rest = mk_str_first(line, line.len - 1);
    MK_ASSERT(!out.failed && mk_str_find(line, '\n') == line.len - 1);
    check_cell(mk_str_cut(&rest, '\t'), in);
    mk_str hex = mk_str_cut(&rest, '\t');
    postgres_bytea_decode(&bytes, mk_str_skip(hex, 1));
    MK_ASSERT(hex.p[0] == '\\' && mk_str_eq(mk_buf_str(&bytes), in));
    check_cell(mk_str_cut(&rest, '\t'), in);
    MK_ASSERT(!rest.p);
    mk_buf_free(&out);
    mk_buf_free(&bytes);
}

/* Reads bytes in the format of bytea_output = escape, including forms that the server never writes. */
static void check_bytes(mk_str in)
{
    struct mk_buf out = mk_buf_growing(4 * TEXT_MAX), back = mk_buf_growing(4 * TEXT_MAX);
    for (size_t i = 0; i < in.len; i++) {
        unsigned char c = (unsigned char)in.p[i];
        if (c < 0x20 || c > 0x7e)
            mk_buf_addf(&out, "\\%03o", c);
        else
            mk_buf_addf(&out, c == '\\' ? "\\\\" : "%c", c);
    }
    postgres_bytea_decode(&back, mk_buf_str(&out));
    MK_ASSERT(mk_str_eq(mk_buf_str(&back), in));
    mk_buf_clear(&back);
    postgres_bytea_decode(&back, in);
    MK_ASSERT(back.len <= in.len);
    mk_buf_free(&out);
    mk_buf_free(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str in = mk_str_of((const char *)data, size);
    if (size > TEXT_MAX)
        return 0;
    check_constant(in);
    check_row(in);
    check_bytes(in);
    return 0;
}
