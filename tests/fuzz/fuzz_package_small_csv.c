/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is parsed as rows or rejected; the rows are written, and parse to the same cells. */
#include <duda/csv.h>

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes the rows of `text`; returns false if it is not CSV. */
static bool copy(mk_str text, struct mk_buf *out)
{
    struct mk_buf buffer = mk_buf_growing(1 << 16);
    struct duda_csv csv = duda_csv_of(text, ',', &buffer);
    struct duda_csv_writer w = {.out = out};
    mk_str cell;
    int got;
    while ((got = duda_csv_next(&csv, &cell)) == 1) {
        duda_csv_add(&w, cell);
        if (csv.row_ended)
            duda_csv_end_row(&w);
    }
    MK_ASSERT(got == 0 || csv.error || buffer.failed);
    mk_buf_free(&buffer);
    return got == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_buf once = mk_buf_growing(1 << 20), twice = mk_buf_growing(1 << 20);
    /* A first cell that starts with a byte order mark would lose it. */
    if (copy(mk_str_of((const char *)data, size), &once) && !once.failed &&
        !mk_str_starts(mk_buf_str(&once), MK_STR("\xef\xbb\xbf"))) {
        MK_ASSERT(copy(mk_buf_str(&once), &twice));
        MK_ASSERT(mk_str_eq(mk_buf_str(&once), mk_buf_str(&twice)));
    }
    mk_buf_free(&once);
    mk_buf_free(&twice);
    return 0;
}
