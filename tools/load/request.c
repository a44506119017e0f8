/* SPDX-License-Identifier: Apache-2.0 */
#include "load/request.h"

static bool is_header_named(const char *line, mk_str name)
{
    mk_str field = mk_str_from_c(line);
    return mk_str_eq_nocase(mk_str_trim(mk_str_first(field, mk_str_find(field, ':'))), name);
}

static bool has_header(char *const *fields, mk_str name)
{
    for (size_t i = 0; fields[i]; i++)
        if (is_header_named(fields[i], name))
            return true;
    return false;
}

void load_request_write(struct mk_buf *out, const struct load_url *url, const char *agent,
                        char *const *fields, bool closes)
{
    mk_buf_addf(out, "GET %.*s HTTP/1.1\r\n", MK_STR_ARG(url->target));
    if (!has_header(fields, MK_STR("Host")))
        mk_buf_addf(out, "Host: %.*s\r\n", MK_STR_ARG(url->authority));
    if (!has_header(fields, MK_STR("User-Agent")))
        mk_buf_addf(out, "User-Agent: %s\r\n", agent);
    for (size_t i = 0; fields[i]; i++)
        if (!closes || !is_header_named(fields[i], MK_STR("Connection")))
            mk_buf_addf(out, "%s\r\n", fields[i]);
    mk_buf_add(out, closes ? MK_STR("Connection: close\r\n\r\n") : MK_STR("\r\n"));
}
