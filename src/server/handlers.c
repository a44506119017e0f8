/* SPDX-License-Identifier: Apache-2.0 */
#include "server/handlers.h"

#include "base/num.h"
#include "conf/nearest.h"
#include "http/field.h"
#include "web/redirect.h"
#include "web/static.h"

/* Tells a handler the words behind its name; false when they are wrong. */
typedef bool bind_fn(struct mk_arena *arena, mk_str words, void **data);

static bool bind_nothing(struct mk_arena *arena, mk_str words, void **data)
{
    (void)arena;
    *data = NULL;
    return words.len == 0;
}

static bool parse_status(mk_str word, unsigned from, unsigned to, unsigned *status)
{
    uint64_t n;
    if (!mk_num_parse(word, &n) || n < from || n > to)
        return false;
    *status = (unsigned)n;
    return true;
}

static bool bind_redirect(struct mk_arena *arena, mk_str words, void **data)
{
    struct mk_redirect *r = mk_arena_alloc(arena, sizeof *r);
    *data = r;
    if (!r)
        return false;
    bool known = parse_status(mk_str_word(&words), 301, 308, &r->status);
    r->url = mk_str_word(&words);
    bool is_redirect = r->status <= 303 || r->status >= 307;
    return known && is_redirect && words.len == 0 && mk_is_field_value(r->url) &&
           mk_redirect_is_target(r->url);
}

static bool bind_status(struct mk_arena *arena, mk_str words, void **data)
{
    unsigned *status = mk_arena_alloc(arena, sizeof *status);
    *data = status;
    return status && parse_status(mk_str_word(&words), 400, 599, status) && words.len == 0;
}

static const struct {
    const struct mk_handler *handler;
    bind_fn *bind;
} known[] = {
    {&mk_static, bind_nothing},
    {&mk_redirect, bind_redirect},
    {&mk_refusal, bind_status},
};

static size_t find(mk_str name)
{
    size_t i = 0;
    while (i < MK_LEN(known) && !mk_str_eq_nocase(mk_str_from_c(known[i].handler->name), name))
        i++;
    return i;
}

bool mk_handlers_has(mk_str name)
{
    return find(name) < MK_LEN(known);
}

static void report_unknown(struct mk_conf_report *report, const struct mk_conf_entry *entry, mk_str name)
{
    struct mk_conf_nearest near = mk_conf_nearest_to(name);
    struct mk_conf_place at = mk_conf_tree_place(entry, name);
    for (size_t i = 0; i < MK_LEN(known); i++)
        mk_conf_nearest_try(&near, mk_str_from_c(known[i].handler->name));
    mk_conf_report_error(report, &at, "there is no handler `%.*s`: expected static, redirect or status",
                         MK_STR_ARG(name));
    mk_conf_report_meant(report, near.best);
}

bool mk_handlers_bind(struct mk_arena *arena, struct mk_conf_report *report,
                      const struct mk_conf_entry *entry, mk_str words, struct mk_route *route)
{
    mk_str rest = words, name = mk_str_word(&rest);
    size_t i = find(name);
    if (i == MK_LEN(known)) {
        report_unknown(report, entry, name);
        return false;
    }
    route->handler = known[i].handler;
    route->written = words;
    if (known[i].bind(arena, mk_str_trim(rest), &route->data))
        return true;
    if (route->handler->form && !route->data) {
        report->no_memory = true;
        return false;
    }
    struct mk_conf_place at = mk_conf_tree_place(entry, words);
    const char *form = route->handler->form;
    mk_conf_report_error(report, &at, "the handler `%s` expects %s%s", route->handler->name, form ? form : "",
                         form ? "" : "nothing behind it");
    return false;
}

bool mk_handlers_bind_status(struct mk_arena *arena, unsigned status, mk_str written, struct mk_route *route)
{
    unsigned *data = mk_arena_alloc(arena, sizeof *data);
    if (!data)
        return false;
    *data = status;
    route->handler = &mk_refusal;
    route->data = data;
    route->written = written;
    return true;
}
