/* SPDX-License-Identifier: Apache-2.0 */
#include <duda/value.h>
#include <monkey/json.h>

#include "text/schema_field.h"

void duda_number_write(struct mk_buf *out, double n)
{
    struct mk_json_writer w = mk_json_writer_to(out);
    mk_json_double(&w, n);
}

bool duda_integer_parse(mk_str s, struct duda_integer *out)
{
    out->is_negative = s.len && s.p[0] == '-';
    return mk_num_parse(mk_str_skip(s, out->is_negative), &out->amount);
}
