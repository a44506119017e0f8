/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the variables in formats, such as $remote_addr. */
#include <monkey/format.h>

#include "web/request_type.h"
#include "web/web.h"

/* Returns a name from the configuration of the host, because the Host header may be missing or spelled
 * differently. Skips regular expressions. */
static mk_str server_name_value(const struct mk_request *r)
{
    mk_str name = r->site ? mk_vhost_name(r->site) : MK_STR("");
    return mk_str_starts(name, MK_STR("~")) ? mk_vhost_first_plain_name(r->site) : name;
}

static mk_str host_value(const struct mk_request *r)
{
    mk_str name = mk_request_host(r);
    return name.len ? name : server_name_value(r);
}

static mk_str protocol_value(const struct mk_request *r)
{
    unsigned version = mk_request_version(r);
    return version >= 20 ? MK_STR("HTTP/2.0") : version == 10 ? MK_STR("HTTP/1.0") : MK_STR("HTTP/1.1");
}

static const struct format_variable {
    const char *name;
    mk_str (*value)(const struct mk_request *r); /* NULL: the client's address, which needs formatting */
    bool is_decoded;                             /* the value is decoded: a `%` in it is literal */
} variables[] = {
    {"host", host_value, false},
    {"method", mk_request_method_text, false},
    {"path", mk_request_path, true},
    {"protocol", protocol_value, false},
    {"query", mk_request_query, false},
    {"remote_addr", NULL, false},
    {"remote_user", mk_request_user, true},
    {"scheme", mk_request_scheme, false},
    {"server_name", server_name_value, false},
    {"target", mk_request_target, false},
};

static bool is_unescaped_char(char c, bool is_decoded)
{
    return c > ' ' && c < 0x7f && c != '"' && c != '\\' && !(is_decoded && c == '%');
}

static void append_escaped(struct mk_buf *out, mk_str s, bool is_decoded)
{
    for (size_t i = 0; i < s.len; i++) {
        if (is_unescaped_char(s.p[i], is_decoded))
            mk_buf_add_char(out, s.p[i]);
        else
            mk_buf_addf(out, "%%%02X", (unsigned char)s.p[i]);
    }
}

bool mk_variable_print(mk_str name, const struct mk_request *r, struct mk_buf *out)
{
    const struct format_variable *v = variables;
    while (v < variables + MK_LEN(variables) && !mk_str_eq(name, mk_str_from_c(v->name)))
        v++;
    if (v == variables + MK_LEN(variables))
        return false;
    if (v->value)
        append_escaped(out, v->value(r), v->is_decoded);
    else
        mk_addr_format(r->peer, out);
    return true;
}

const char *mk_variable_name(size_t i)
{
    return i < MK_LEN(variables) ? variables[i].name : NULL;
}
