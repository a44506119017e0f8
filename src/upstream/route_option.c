/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/route_option.h"

#include <monkey/text.h>
#include <string.h>

#include "base/compiler.h"
#include "conf/suggest.h"

enum { TEXT_MAX = 320 };

struct route_options {
    const struct mk_conf_ctx *ctx;
    const struct mk_route_option_type *types;
    size_t n;
    void *route;
};

bool mk_route_option_fail(const struct mk_route_option *o, const char *expected)
{
    mk_conf_ctx_error(o->ctx, o->word, "expected %s", expected);
    return false;
}

/* ---- Error statuses ---- */

/* Parses "404" or "5xx". */
static bool statuses_add(struct mk_route_statuses *s, mk_str word)
{
    uint64_t n;
    bool is_class = word.len == 3 && mk_str_eq(mk_str_skip(word, 1), MK_STR("xx"));
    if (!mk_num_parse(is_class ? mk_str_first(word, 1) : word, &n))
        return false;
    uint64_t first = is_class ? n * 100 : n, last = is_class ? first + 99 : first;
    if (first < 400 || last > 599)
        return false;
    for (uint64_t i = first - 400; i <= last - 400; i++)
        s->bits[i / 64] |= UINT64_C(1) << (i % 64);
    return true;
}

bool mk_route_option_read_statuses(const struct mk_route_option *o, const struct mk_route_statuses **out)
{
    mk_str list = mk_str_eq(o->value, MK_STR("on")) ? MK_STR("4xx,5xx") : o->value;
    struct mk_route_statuses *s = mk_conf_ctx_alloc(o->ctx, sizeof *s);
    *out = NULL;
    if (!s || mk_str_eq(list, MK_STR("off")))
        return s;
    while (list.p)
        if (!statuses_add(s, mk_str_cut(&list, ',')))
            return mk_route_option_fail(o, "`on`, `off`, or statuses from 400 to 599 such as `404,5xx`");
    *out = s;
    return true;
}

/* ---- Options ---- */

static void option_store(const struct mk_route_option_type *type, void *route, unsigned value)
{
    char *member = (char *)route + type->offset;
    if (type->size == sizeof value)
        memcpy(member, &value, sizeof value);
    else
        *(bool *)member = value;
}

static bool option_report_choices(const struct mk_route_option *o, const struct mk_buf *list)
{
    mk_conf_ctx_error(o->ctx, o->word, "expected %.*s", MK_STR_ARG(mk_buf_str(list)));
    return false;
}

static bool option_read_choice(const struct mk_route_option_type *type, const struct mk_route_option *o)
{
    char text[TEXT_MAX];
    struct mk_buf list = mk_buf_fixed(text, sizeof text);
    for (size_t i = 0; i < type->n_choices; i++) {
        if (mk_str_eq(o->value, mk_str_from_c(type->choices[i]))) {
            option_store(type, o->route, (unsigned)i);
            return true;
        }
        mk_buf_addf(&list, "%s`%s`", i == 0 ? "" : i + 1 < type->n_choices ? ", " : " or ", type->choices[i]);
    }
    return option_report_choices(o, &list);
}

/* Options that mk_upstream_limits_read() reads. */
static const char *const limit_options[] = {"max_tries", "response_timeout", "read_timeout", "total_timeout"};

/* Hints for options of other servers. */
static const struct {
    const char *name, *hint;
} other_options[] = {
    {"timeout", "did you mean `response_timeout`?"},
    {"set", "[REQUEST_HEADERS] sets headers of requests: `Set X-Real-IP $remote_addr`"},
};

static void option_hint_unknown(const struct route_options *all, const struct mk_route_option *o)
{
    mk_str rest = o->word, name = mk_str_cut(&rest, '=');
    struct mk_conf_suggest near = mk_conf_suggest_for(name);
    for (size_t i = 0; i < MK_LEN(other_options); i++)
        if (mk_str_eq(name, mk_str_from_c(other_options[i].name))) {
            mk_conf_ctx_hint(o->ctx, "%s", other_options[i].hint);
            return;
        }
    for (size_t i = 0; i < all->n; i++)
        mk_conf_suggest_try(&near, mk_str_from_c(all->types[i].name));
    for (size_t i = 0; i < MK_LEN(limit_options); i++)
        mk_conf_suggest_try(&near, mk_str_from_c(limit_options[i]));
    if (near.best.p)
        mk_conf_ctx_hint(o->ctx, "did you mean `%.*s`?", MK_STR_ARG(near.best));
}

static bool option_report_unknown(const struct route_options *all, const struct mk_route_option *o)
{
    char text[TEXT_MAX];
    struct mk_buf list = mk_buf_fixed(text, sizeof text);
    for (size_t i = 0; i < all->n; i++)
        mk_buf_addf(&list, "%s, ", all->types[i].name);
    mk_buf_addf(&list, "max_tries, response_timeout, read_timeout or total_timeout");
    (void)option_report_choices(o, &list);
    option_hint_unknown(all, o);
    return false;
}

static bool type_is_flag(const struct mk_route_option_type *type)
{
    return !type->read && !type->choices;
}

static const struct mk_route_option_type *options_find(const struct route_options *all, mk_str name,
                                                       bool is_flag)
{
    for (size_t i = 0; i < all->n; i++)
        if (type_is_flag(&all->types[i]) == is_flag && mk_str_eq(name, mk_str_from_c(all->types[i].name)))
            return &all->types[i];
    return NULL;
}

static bool option_read(void *ctx, mk_str word)
{
    const struct route_options *all = ctx;
    struct mk_route_option o = {.ctx = all->ctx, .word = word, .value = word, .route = all->route};
    mk_str name = mk_str_cut(&o.value, '=');
    const struct mk_route_option_type *type = options_find(all, name, !o.value.p);
    if (!o.value.len && !(type && type_is_flag(type)))
        return mk_route_option_fail(&o, "an option such as `response_timeout=30s`");
    if (!type)
        return option_report_unknown(all, &o);
    if (type->read)
        return type->read(&o);
    if (type->choices)
        return option_read_choice(type, &o);
    option_store(type, o.route, true);
    return true;
}

bool mk_route_options_read(const struct mk_conf_ctx *conf, mk_str words,
                           const struct mk_route_option_type *types, size_t n, void *route,
                           struct mk_upstream_limits *limits)
{
    struct route_options all = {.ctx = conf, .types = types, .n = n, .route = route};
    return mk_upstream_limits_read(conf, words, limits, option_read, &all);
}
