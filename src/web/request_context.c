/* SPDX-License-Identifier: Apache-2.0 */
/* Request IDs: created on demand, and passed to other programs. */
#include <errno.h>
#include <monkey/text.h>

#include "web/exchange.h"
#include "web/vhost.h"

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
    mk_str known = mk_request_known_id(r);
    struct mk_request_extras *extras = NULL;
    if (known.p)
        return known;
    if (!r->arena || !(extras = mk_request_get_extras(r))) /* a copy for the log has no arena */
        return MK_STR("-");
    mk_str given =
        r->trusts_proxy ? mk_request_single_received_header(r, MK_STR(MK_REQUEST_ID_HEADER)) : MK_STR_NULL;
    extras->id = is_valid_id(given) ? mk_arena_copy(r->arena, given) : generate_id(r);
    return extras->id.p ? extras->id : MK_STR("-");
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

void mk_request_trust_proxy(struct mk_request *r)
{
    r->trusts_proxy = true;
}

/* ---- Headers for other programs ---- */

int mk_request_add_context(struct mk_request *r)
{
    mk_str id = mk_request_known_id(r);
    int e = id.p ? mk_request_set_context_header(r, MK_STR(MK_REQUEST_ID_HEADER), id) : 0;
    const struct mk_vhost_tracing *tracing = r->site ? r->site->tracing : NULL;
    return e || !tracing ? e : tracing->add_headers(r);
}
