/* SPDX-License-Identifier: Apache-2.0 */
#include "expires.h"

#include <monkey/worker.h>

static bool parse_lifetime(const struct mk_conf_ctx *ctx, mk_str word, struct expiry *e)
{
    uint64_t seconds = 0;
    e->off = mk_str_eq_nocase(word, MK_STR("off"));
    if (!e->off && !headers_parse_duration(word, &seconds)) {
        mk_conf_ctx_error(ctx, word,
                          "`%.*s` is not a time: expected a number with s, m, h, d, w or y, or `off`",
                          MK_STR_ARG(word));
        return false;
    }
    e->seconds = (uint32_t)seconds;
    enum { ROOM = 24 };
    char *buf = mk_conf_ctx_alloc(ctx, ROOM);
    if (!buf)
        return false;
    struct mk_buf text = mk_buf_fixed(buf, ROOM);
    mk_buf_addf(&text, "max-age=%u", (unsigned)e->seconds);
    e->cache_control = seconds ? mk_buf_str(&text) : MK_STR("no-cache");
    return true;
}

bool headers_expires_parse(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct expiries *list = field;
    struct expiry e = {.written = value};
    mk_str rest = value, word;
    enum condition_word c = CONDITION_TAKEN;
    while (c == CONDITION_TAKEN) {
        if (!mk_conf_ctx_word(ctx, &rest, &word))
            return false;
        if (!word.p) {
            mk_conf_ctx_error(ctx, value, "missing time: expected `Expires [conditions] TIME`");
            return false;
        }
        c = headers_condition_parse(ctx, word, &e.when);
        if (c == CONDITION_NONE && !e.when.type.p && headers_condition_parse_type(word, &e.when))
            c = CONDITION_TAKEN;
    }
    if (c == CONDITION_WRONG || !parse_lifetime(ctx, word, &e))
        return false;
    rest = mk_str_trim(rest);
    if (rest.len) {
        mk_conf_ctx_error(ctx, rest, "unexpected `%.*s` after the time", MK_STR_ARG(rest));
        return false;
    }
    return mk_conf_ctx_append(ctx, &list->v, &list->n, &e, sizeof e);
}

bool headers_expires_show(const void *field, size_t i, struct mk_buf *out)
{
    const struct expiries *list = field;
    if (i < list->n)
        mk_buf_add(out, list->v[i].written);
    return i < list->n;
}

/* Excludes errors and temporary responses, which caches do not store, and responses with a Cache-Control
 * header. */
static bool is_cacheable(struct response_facts *f)
{
    switch (f->status) {
    case 200:
    case 203:
    case 206:
    case 301:
    case 304:
    case 308:
        break;
    default:
        return false;
    }
    return !headers_response_has(f, MK_STR("Cache-Control")) && !headers_response_has(f, MK_STR("Expires"));
}

static void add_lifetime_headers(const struct expiry *e, struct response_facts *f)
{
    headers_response_add(f, MK_STR("Cache-Control"), e->cache_control);
    char *date = mk_request_alloc(f->request, MK_DATE_LEN);
    if (!date)
        return;
    mk_date_write(date, mk_worker_now(mk_request_worker(f->request)) + e->seconds);
    headers_response_add(f, MK_STR("Expires"), mk_str_of(date, MK_DATE_LEN));
}

void headers_expires_apply(const struct expiries *list, struct response_facts *facts)
{
    if (list->n == 0 || !is_cacheable(facts))
        return;
    for (const struct expiry *e = list->v; e < list->v + list->n; e++) {
        if (!headers_condition_matches(&e->when, facts))
            continue;
        if (!e->off)
            add_lifetime_headers(e, facts);
        return;
    }
}
