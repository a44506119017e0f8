/* SPDX-License-Identifier: Apache-2.0 */
#include "request_filter.h"

static bool parse_status(mk_str word, struct request_filter *c)
{
    uint64_t n;
    bool is_class = word.len == 3 && mk_str_eq_nocase(mk_str_skip(word, 1), MK_STR("xx"));
    if (!mk_num_parse(is_class ? mk_str_first(word, 1) : word, &n))
        return false;
    n = is_class ? n * 100 : n;
    c->status_min = (unsigned)n;
    c->status_max = (unsigned)n + (is_class ? 99 : 0);
    return n >= 200 && n <= 599;
}

static bool parse_filter_word(const struct mk_conf_ctx *ctx, mk_str word, struct request_filter *c)
{
    *c = (struct request_filter){.written = word};
    if (mk_pattern_set(&c->path, word) || parse_status(word, c))
        return true;
    mk_conf_ctx_error(ctx, word,
                      "`%.*s` is neither a path nor a status: expected one like /health, *.css, 404 or 5xx",
                      MK_STR_ARG(word));
    return false;
}

bool logger_request_filter_parse(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct request_filters *list = field;
    mk_str rest = value, word;
    struct request_filter c;
    for (;;) {
        if (!mk_conf_ctx_word(ctx, &rest, &word))
            return false;
        if (!word.p)
            return true;
        if (!parse_filter_word(ctx, word, &c) || !mk_conf_ctx_append(ctx, &list->v, &list->n, &c, sizeof c))
            return false;
    }
}

bool logger_request_filter_show(const void *field, size_t i, struct mk_buf *out)
{
    const struct request_filters *list = field;
    if (i >= list->n)
        return false;
    mk_str word = list->v[i].written;
    bool quotes = mk_str_find(word, ' ') != MK_STR_NONE || mk_str_find(word, '\t') != MK_STR_NONE;
    mk_buf_addf(out, quotes ? "\"%.*s\"" : "%.*s", MK_STR_ARG(word));
    return true;
}

bool logger_request_filter_match(const struct request_filters *list, const struct mk_access_record *record)
{
    unsigned status = mk_access_record_status(record) ? mk_access_record_status(record) : 499;
    mk_str path = mk_request_path(mk_access_record_request(record));
    for (const struct request_filter *c = list->v; c < list->v + list->n; c++) {
        bool by_status = status >= c->status_min && status <= c->status_max;
        if (c->status_max ? by_status : path.p && mk_pattern_matches(&c->path, path))
            return true;
    }
    return false;
}
