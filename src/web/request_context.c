/* SPDX-License-Identifier: Apache-2.0 */
/* Request IDs: created on demand, and passed to other programs. */
#include <errno.h>
#include <monkey/text.h>

#include "web/exchange.h"

enum { ID_BYTES = 16 }; /* random bytes of a generated ID */

/* ---- Request ID ---- */

/* May a proxy set this ID? It must not need escaping in logs, headers and file names. */
static bool is_valid_id(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!mk_char_is_alpha(s.p[i]) && !mk_char_is_digit(s.p[i]) && s.p[i] != '.' && s.p[i] != '_' &&
            s.p[i] != '-')
            return false;
    return s.len > 0 && s.len <= MK_REQUEST_ID_MAX;
}

static mk_str generate_id(struct mk_request *r)
{
    char *text = mk_arena_alloc(r->arena, 2 * ID_BYTES + 1);
    if (!text)
        return MK_STR_NULL;
    struct mk_buf out = mk_buf_fixed(text, 2 * ID_BYTES);
    mk_hex_encode(&out, mk_str_of(mk_random_pool_get(&r->web->random, ID_BYTES), ID_BYTES));
    text[out.len] = '\0';
    return mk_buf_str(&out);
}

mk_str mk_request_id(const struct mk_request *request)
{
    struct mk_request *r = (struct mk_request *)(uintptr_t)request;
    if (r->id.p || !r->arena) /* a copy for the log has no arena */
        return r->id.p ? r->id : MK_STR("-");
    mk_str given = r->trusts_proxy ? mk_headers_find(&r->fields, MK_STR(MK_REQUEST_ID_HEADER)) : MK_STR_NULL;
    r->id = is_valid_id(given) ? mk_arena_copy(r->arena, given) : generate_id(r);
    return r->id.p ? r->id : MK_STR("-");
}

mk_str mk_request_log_id(struct mk_request *r)
{
    r->logs_id = true;
    return mk_request_id(r);
}

bool mk_request_logs_id(const struct mk_request *r)
{
    return r->logs_id;
}

bool mk_request_has_id(const struct mk_request *r)
{
    return r->id.p;
}

void mk_request_trust_proxy(struct mk_request *r)
{
    r->trusts_proxy = true;
}

/* ---- Headers for other programs ---- */

/* Replaces all lines with that name by one line. The server must not interpret the header itself. */
static bool set_request_header(struct mk_request *r, mk_str name, mk_str value)
{
    struct mk_headers *all = &r->fields;
    struct mk_header_field *at = mk_arena_alloc(r->arena, (all->n + 1) * sizeof *at);
    if (!at)
        return false;
    unsigned n = 0;
    memset(all->first, 0, sizeof all->first);
    for (unsigned i = 0; i < all->n; i++) {
        const struct mk_header_field *f = &all->at[i];
        if (f->name.len == name.len && mk_str_eq_nocase(f->name, name))
            continue;
        at[n++] = *f;
        if (f->id && !all->first[f->id])
            all->first[f->id] = (uint8_t)n;
    }
    at[n++] = (struct mk_header_field){.name = name, .value = value};
    all->at = at;
    all->n = n;
    return true;
}

int mk_request_add_context(struct mk_request *r)
{
    bool ok = !r->id.p || set_request_header(r, MK_STR(MK_REQUEST_ID_HEADER), r->id);
    return ok ? 0 : -ENOMEM;
}
