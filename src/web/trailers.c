/* SPDX-License-Identifier: Apache-2.0 */
#include "web/trailers.h"

#include "http/header.h"
#include "web/request_type.h"
#include "web/response.h"

enum { RESPONSE_MAX = 16 * 1024, FRAMING = 4 };

bool mk_trailers_add(struct mk_trailers **list, struct mk_arena *a, mk_str name, mk_str value)
{
    struct mk_trailers *t = *list ? *list : mk_arena_zalloc(a, 1, sizeof *t);
    struct mk_header_field one = {.name = name, .value = value};
    if (!t || !mk_arena_append(a, &t->at, &t->n, &one, sizeof one))
        return false;
    t->bytes += name.len + value.len + FRAMING;
    *list = t;
    return true;
}

/* ---- Request trailers ---- */

mk_str mk_request_trailer(const struct mk_request *r, mk_str name)
{
    mk_str other, value;
    for (size_t i = 0; mk_request_trailer_at(r, i, &other, &value); i++)
        if (mk_str_eq_nocase(other, name))
            return value;
    return MK_STR_NULL;
}

/* ---- Response trailers ---- */

int mk_response_add_trailer(struct mk_response *r, mk_str name, mk_str value)
{
    size_t before = r->trailers ? r->trailers->bytes : 0;
    if (!mk_is_token(name) || !mk_is_header_value(value) || !mk_trailer_is_allowed(name))
        return -EINVAL;
    if (name.len > RESPONSE_MAX || value.len > RESPONSE_MAX ||
        before + name.len + value.len + FRAMING > RESPONSE_MAX)
        return -EMSGSIZE;
    name = mk_arena_copy(r->arena, name);
    value = mk_arena_copy(r->arena, value);
    if (!name.p || !value.p || !mk_trailers_add(&r->trailers, r->arena, name, value))
        return -ENOMEM;
    r->own |= MK_RESPONSE_OWN_TRAILER;
    return 0;
}

/* Adds a Trailer header that lists the known trailers. */
static bool add_trailer_header(struct mk_response *r)
{
    struct mk_buf names = mk_buf_growing(RESPONSE_MAX);
    for (unsigned i = 0; i < r->trailers->n; i++) {
        if (i)
            mk_buf_add(&names, MK_STR(", "));
        mk_buf_add(&names, r->trailers->at[i].name);
    }
    bool added = mk_response_add_header(r, MK_STR("Trailer"), mk_buf_str(&names)) == 0;
    mk_buf_free(&names);
    return added;
}

void mk_trailers_announce(const struct mk_request *request, struct mk_response *r)
{
    bool framed = request->version >= 20 || r->content.length == MK_RESPONSE_BODY_UNKNOWN;
    if (!framed || !mk_request_accepts_trailers(request))
        (void)mk_response_remove_header(r, MK_STR("Trailer"));
    else if (r->trailers && !mk_response_header(r, MK_STR("Trailer")).p)
        (void)add_trailer_header(r);
}
