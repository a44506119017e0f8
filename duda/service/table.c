/* SPDX-License-Identifier: Apache-2.0 */
#include "service/table.h"

static bool match_segment(mk_str pattern, mk_str text, struct duda_found *out)
{
    if (pattern.len == 0 || pattern.p[0] != ':')
        return mk_str_eq(pattern, text);
    if (text.len == 0 || out->n_params >= DUDA_PARAMS_MAX)
        return false;
    out->params[out->n_params++] = (struct duda_param_value){mk_str_skip(pattern, 1), text};
    return true;
}

static bool match(mk_str pattern, mk_str path, struct duda_found *out)
{
    out->n_params = 0;
    while (pattern.p && path.p) {
        mk_str part = mk_str_cut(&pattern, '/');
        if (part.len && part.p[0] == '*' && out->n_params < DUDA_PARAMS_MAX) {
            mk_str rest = mk_str_of(path.p, path.len);
            out->params[out->n_params++] = (struct duda_param_value){mk_str_skip(part, 1), rest};
            return true;
        }
        if (!match_segment(part, mk_str_cut(&path, '/'), out))
            return false;
    }
    return !pattern.p && !path.p;
}

static bool has_method(const struct duda_route *r, mk_str method)
{
    mk_str own = mk_str_from_c(r->method);
    return mk_str_eq(own, MK_STR("*")) || mk_str_eq(own, method) ||
           (mk_str_eq(method, MK_STR("HEAD")) && mk_str_eq(own, MK_STR("GET")));
}

void duda_table_find(const struct duda_route *routes, mk_str method, mk_str path, struct duda_found *out)
{
    *out = (struct duda_found){0};
    for (const struct duda_route *r = routes; r->method; r++) {
        if (!match(mk_str_from_c(r->path), path, out))
            continue;
        out->others = true;
        if (has_method(r, method)) {
            out->route = r;
            return;
        }
    }
}

void duda_table_allow(const struct duda_route *routes, mk_str path, struct mk_buf *out)
{
    struct duda_found found = {0};
    for (const struct duda_route *r = routes; r->method; r++)
        if (match(mk_str_from_c(r->path), path, &found)) {
            mk_buf_addf(out, "%s, ", r->method);
            if (mk_str_eq(mk_str_from_c(r->method), MK_STR("GET")))
                mk_buf_add(out, MK_STR("HEAD, "));
        }
    mk_buf_add(out, MK_STR("OPTIONS"));
}
