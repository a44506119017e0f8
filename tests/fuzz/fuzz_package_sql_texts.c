/* SPDX-License-Identifier: Apache-2.0 */
/* Named parameters, and arrays of PostgreSQL: the numbered statement has no names left, and its parameters
 * are numbered without gaps; elements of arrays are read back as they were written. */
#include "base/assert.h"
#include "sql/array_text.h"
#include "sql/named_parameters.h"

enum { NAMES_MAX = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_statement(mk_str text)
{
    mk_str at[NAMES_MAX], at_again[NAMES_MAX];
    struct sql_names names = {.at = at, .max = NAMES_MAX}, again = {.at = at_again, .max = NAMES_MAX};
    struct mk_buf out = mk_buf_growing(1 << 20), second = mk_buf_growing(1 << 20);
    int e = sql_named_parameters_replace(&out, text, &names);
    MK_ASSERT(names.n <= NAMES_MAX);
    for (size_t i = 0; i < names.n; i++)
        MK_ASSERT(names.at[i].len > 0 && names.at[i].p > text.p);
    if (!e && !names.n) {
        MK_ASSERT(out.len == text.len && (!out.len || memcmp(out.p, text.p, text.len) == 0));
        e = sql_named_parameters_replace(&second, mk_buf_str(&out), &again);
        MK_ASSERT(e == 0 && again.n == 0);
    }
    mk_buf_free(&out);
    mk_buf_free(&second);
}

static void check_array(mk_str text)
{
    struct mk_buf out = mk_buf_growing(1 << 20), array = mk_buf_growing(1 << 20);
    for (int elements = SQL_ARRAY_OF_NUMBERS; elements <= SQL_ARRAY_OF_STRINGS; elements++) {
        mk_buf_clear(&out);
        (void)sql_array_to_json(&out, text, (enum sql_array_elements)elements);
    }
    mk_buf_add_char(&array, '{');
    sql_array_write_element(&array, text, true);
    mk_buf_add_char(&array, '}');
    mk_buf_clear(&out);
    MK_ASSERT(sql_array_to_json(&out, mk_buf_str(&array), SQL_ARRAY_OF_STRINGS));
    mk_buf_free(&out);
    mk_buf_free(&array);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str text = mk_str_of((const char *)data, size);
    check_statement(text);
    check_array(text);
    return 0;
}
