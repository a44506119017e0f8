/* SPDX-License-Identifier: Apache-2.0 */
#include <duda/csv.h>
#include <math.h>

#include "unit/test.h"

/* Returns the cells as [cell], with `;` after each row and `!` before an error. */
static mk_str read_all(const char *text, char separator)
{
    static char shown[4096], space[64];
    struct mk_buf out = mk_buf_fixed(shown, sizeof shown), buffer = mk_buf_fixed(space, sizeof space);
    struct duda_csv csv = duda_csv_of(mk_str_from_c(text), separator, &buffer);
    mk_str cell;
    int e;
    while ((e = duda_csv_next(&csv, &cell)) == 1) {
        mk_buf_addf(&out, "[%.*s]", MK_STR_ARG(cell));
        if (csv.row_ended)
            mk_buf_add_char(&out, ';');
    }
    if (e < 0)
        mk_buf_addf(&out, "!%u:%u %s", csv.line, csv.column, csv.error ? csv.error : "buffer");
    return mk_buf_str(&out);
}

static void csv_reader_parses_rows(void **state)
{
    (void)state;
    assert_str(read_all("", ','), "");
    assert_str(read_all("a,b\r\nc,d\r\n", ','), "[a][b];[c][d];");
    assert_str(read_all("a,b\nc", ','), "[a][b];[c];");
    assert_str(read_all("a,\n", ','), "[a][];");
    assert_str(read_all("a,", ','), "[a][];");
    assert_str(read_all("\n\n", ','), "[];[];");
    assert_str(read_all("a;b,c", ';'), "[a][b,c];");
    assert_str(read_all("\xef\xbb\xbfname\n", ','), "[name];");
    assert_str(read_all("\"a,b\",\"c\nd\",\"\"\n", ','), "[a,b][c\nd][];");
    assert_str(read_all("\"say \"\"hi\"\"\",\"\"\"\"", ','), "[say \"hi\"][\"];");
}

static void csv_reader_rejects_malformed(void **state)
{
    (void)state;
    assert_str(read_all("a\n\"b", ','), "[a];!2:1 an unclosed quote");
    assert_str(read_all("a\n\"b\"\"", ','), "[a];!2:1 an unclosed quote");
    assert_contains(read_all("a,b\"c\n", ','), "!1:2 a quote inside");
    assert_contains(read_all("\"a\"b", ','), "!1:1 text after");
    assert_contains(read_all("a\rb", ','), "!1:1 a CR");
    assert_contains(read_all("\"a\n\n\"\nb\"", ','), "!4:1 a quote inside");
    char text[80] = "\"";
    memset(text + 1, 'x', 70);
    memcpy(text + 71, "\"\"\"", 4);
    assert_str(read_all(text, ','), "!1:1 buffer");
}

static void csv_writer_quotes_cells(void **state)
{
    char buffer[256];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    struct duda_csv_writer w = {.out = &out};
    (void)state;
    duda_csv_add(&w, MK_STR("a"));
    duda_csv_add(&w, MK_STR(""));
    duda_csv_add(&w, MK_STR("b,\"c\"\n"));
    duda_csv_end_row(&w);
    duda_csv_add(&w, MK_STR("=1+1"));
    duda_csv_end_row(&w);
    assert_str(mk_buf_str(&out), "a,,\"b,\"\"c\"\"\n\"\r\n=1+1\r\n");
    mk_buf_clear(&out);
    w.escape_formulas = true;
    w.separator = '\t';
    duda_csv_add(&w, MK_STR("=1+1"));
    duda_csv_add(&w, MK_STR("1"));
    duda_csv_end_row(&w);
    assert_str(mk_buf_str(&out), "'=1+1\t1\r\n");
}

static void csv_writer_formats_numbers(void **state)
{
    char buffer[512];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    struct duda_csv_writer w = {.out = &out, .escape_formulas = true};
    (void)state;
    duda_csv_add_int(&w, INT64_MIN);
    duda_csv_add_int(&w, INT64_MAX);
    duda_csv_add_int(&w, 0);
    duda_csv_end_row(&w);
    duda_csv_add_double(&w, -1.005, 1);
    duda_csv_add_double(&w, 2, 0);
    duda_csv_add_double(&w, 0.5, 99);
    duda_csv_add_double(&w, INFINITY, 2);
    duda_csv_add_double(&w, NAN, 2);
    duda_csv_end_row(&w);
    assert_str(mk_buf_str(&out), "-9223372036854775808,9223372036854775807,0\r\n"
                                 "-1.0,2,0.50000000000000000,,\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_reader_parses_rows),
        cmocka_unit_test(csv_reader_rejects_malformed),
        cmocka_unit_test(csv_writer_quotes_cells),
        cmocka_unit_test(csv_writer_formats_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
