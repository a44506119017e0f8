/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ours.h"

#include "base/num.h"
#include "http/field.h"
#include "web/redirect.h"
#include "web/static.h"

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

static const struct mk_ours known[] = {
    {&mk_static, bind_nothing},
    {&mk_redirect, bind_redirect},
    {&mk_refusal, bind_status},
};

const struct mk_ours *mk_ours_at(size_t i)
{
    return i < MK_LEN(known) ? &known[i] : NULL;
}

const struct mk_ours *mk_ours_find(mk_str name)
{
    for (size_t i = 0; i < MK_LEN(known); i++)
        if (mk_str_eq_nocase(mk_str_from_c(known[i].handler->name), name))
            return &known[i];
    return NULL;
}
