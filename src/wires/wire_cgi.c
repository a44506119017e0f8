/* SPDX-License-Identifier: Apache-2.0 */
#include "wires/wire_cgi.h"

#include "base/num.h"

static bool has(mk_str s, char c)
{
    return s.len && memchr(s.p, c, s.len);
}

/* A NUL would end a value of SCGI, and every value in programs of C; environments end a name with `=`. */
static bool is_variable(const struct mk_field_line *f)
{
    return f->name.len && !has(f->name, '\0') && !has(f->name, '=') && !has(f->value, '\0');
}

mk_err mk_wire_cgi_check(const struct mk_client_request *ask, const char **problem)
{
    for (size_t i = 0; i < ask->n_fields; i++)
        if (!is_variable(&ask->fields[i])) {
            *problem = "a variable is invalid";
            return -EINVAL;
        }
    *problem = "the content must have a length";
    if (ask->length == MK_LENGTH_UNKNOWN)
        return -EINVAL;
    *problem = "only HTTP can switch to another protocol";
    return ask->upgrade.len ? -EINVAL : 0;
}

/* Written here alone: a second one would contradict the first. */
static bool is_ours(mk_str name)
{
    return mk_str_eq(name, MK_STR("CONTENT_LENGTH")) || mk_str_eq(name, MK_STR("SCGI"));
}

void mk_wire_cgi_each(const struct mk_client_request *ask, bool always,
                      void (*add)(struct mk_buf *out, mk_str name, mk_str value), struct mk_buf *out)
{
    char digits[MK_NUM_MAX];
    mk_str length = mk_str_of(digits, mk_num_write(digits, (uint64_t)ask->length));
    if (always || ask->length > 0 || mk_wire_expects_content(ask->method))
        add(out, MK_STR("CONTENT_LENGTH"), length);
    for (size_t i = 0; i < ask->n_fields; i++)
        if (!is_ours(ask->fields[i].name))
            add(out, ask->fields[i].name, ask->fields[i].value);
}
