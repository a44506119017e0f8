/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to request headers by hooks. The first change copies the received headers, which the protocol owns,
 * to the request's arena. */
#include "http/header_role.h"
#include "web/request_type.h"

#include "base/err.h"

enum { ROOM = 16 }; /* lines that a copy has room for, beyond those that are there */

/* May a hook change headers with this role? The server itself needs the others as the client sent them, or
 * writes them itself. */
static bool is_changeable_role(enum mk_header_role role, bool removes)
{
    switch (role) {
    case MK_ROLE_CLIENT:
    case MK_ROLE_FORWARDED:
        return true;
    case MK_ROLE_DESTINATION: /* checked against the routes */
    case MK_ROLE_UNDERSCORE:
    case MK_ROLE_CERTIFICATE:
    case MK_ROLE_VIA:
    case MK_ROLE_NONE:
        return removes;
    case MK_ROLE_HOP:
    case MK_ROLE_CONNECTION:
    case MK_ROLE_FRAMING:
    case MK_ROLE_HOST:
    case MK_ROLE_MAX_FORWARDS:
    case MK_ROLE_SERVER:
        break;
    }
    return false;
}

/* Is it a header of the WebSocket handshake, which the server checks? */
static bool is_handshake_header(enum mk_header_id id)
{
    return id == MK_HEADER_SEC_WEBSOCKET_ACCEPT || id == MK_HEADER_SEC_WEBSOCKET_KEY ||
           id == MK_HEADER_SEC_WEBSOCKET_VERSION;
}

bool mk_request_header_is_changeable(mk_str name, bool removes)
{
    return mk_is_token(name) && !is_handshake_header(mk_header_find_id(name)) &&
           is_changeable_role(mk_header_role(name), removes);
}

/* Moves the headers to new memory, with room for more. Returns 0 or -ENOMEM. */
static int grow_headers(struct mk_request *r)
{
    unsigned cap = (unsigned)mk_min(r->fields.n + ROOM, MK_REQUEST_HEADERS_MAX);
    struct mk_header_field *at = mk_arena_alloc(r->arena, cap * sizeof *at);
    if (!at)
        return -ENOMEM;
    if (r->fields.n)
        memcpy(at, r->fields.at, r->fields.n * sizeof *at);
    r->fields.at = at;
    r->extras->header_changes->cap = cap;
    return 0;
}

/* Ensures that request->fields is a copy. Returns 0 or -ENOMEM. */
static int copy_received_headers(struct mk_request *r)
{
    struct mk_request_extras *extras = mk_request_get_extras(r);
    if (!extras || extras->header_changes)
        return extras ? 0 : -ENOMEM;
    struct mk_request_header_changes *c = mk_arena_zalloc(r->arena, 1, sizeof *c);
    if (!c)
        return -ENOMEM;
    c->received = r->fields;
    extras->header_changes = c;
    if (grow_headers(r) == 0)
        return 0;
    extras->header_changes = NULL;
    return -ENOMEM;
}

static void index_line(struct mk_headers *fields, unsigned i)
{
    uint8_t *first = &fields->first[fields->at[i].id];
    if (!*first)
        *first = (uint8_t)(i + 1);
}

static void remove_lines(struct mk_request *r, mk_str name)
{
    bool *is_set = r->extras->header_changes->is_set;
    struct mk_headers kept;
    mk_headers_init(&kept, r->fields.at);
    for (unsigned i = 0; i < r->fields.n; i++) {
        if (mk_header_is_same_variable(r->fields.at[i].name, name))
            continue;
        kept.at[kept.n] = r->fields.at[i];
        is_set[kept.n] = is_set[i];
        index_line(&kept, kept.n++);
    }
    r->fields = kept;
}

static bool has_line(const struct mk_headers *fields, mk_str name)
{
    for (unsigned i = 0; i < fields->n; i++)
        if (mk_header_is_same_variable(fields->at[i].name, name))
            return true;
    return false;
}

static int append_line(struct mk_request *r, mk_str name, mk_str value)
{
    unsigned i = r->fields.n;
    struct mk_header_field line = {.name = mk_arena_copy(r->arena, name),
                                   .value = mk_arena_copy(r->arena, mk_str_trim(value)),
                                   .id = (uint8_t)mk_header_find_id(name)};
    if (!line.name.p || !line.value.p)
        return -ENOMEM;
    r->fields.at[i] = line;
    r->extras->header_changes->is_set[i] = true;
    r->fields.n++;
    index_line(&r->fields, i);
    return 0;
}

bool mk_request_header_is_overridden(const struct mk_request *r, mk_str name)
{
    const struct mk_request_overridden_name *first = r->extras ? r->extras->overridden_names : NULL;
    for (const struct mk_request_overridden_name *o = first; o; o = o->next)
        if (mk_header_is_same_variable(o->name, name))
            return true;
    return false;
}

/* In HTTP/1, only chunked bodies have trailers. */
static bool may_have_trailers(const struct mk_request *r)
{
    return r->version >= 20 || r->length == MK_REQUEST_LENGTH_UNKNOWN;
}

/* Keeps the name, even if there is no header of that name. Returns 0 or -ENOMEM. */
static int override_name(struct mk_request *r, mk_str name)
{
    if (!may_have_trailers(r) || mk_request_header_is_overridden(r, name))
        return 0;
    struct mk_request_extras *extras = mk_request_get_extras(r);
    struct mk_request_overridden_name *o = extras ? mk_arena_alloc(r->arena, sizeof *o) : NULL;
    if (!o)
        return -ENOMEM;
    *o = (struct mk_request_overridden_name){.name = mk_arena_copy(r->arena, name),
                                             .next = extras->overridden_names};
    if (!o->name.p)
        return -ENOMEM;
    extras->overridden_names = o;
    return 0;
}

static int change_header(struct mk_request *r, mk_str name, mk_str value, bool replaces)
{
    if (!mk_request_header_is_changeable(name, false) || !mk_is_header_value(value))
        return -EINVAL;
    if (override_name(r, name) || copy_received_headers(r))
        return -ENOMEM;
    if (replaces)
        remove_lines(r, name);
    if (r->fields.n == MK_REQUEST_HEADERS_MAX)
        return -E2BIG;
    if (r->fields.n == r->extras->header_changes->cap && grow_headers(r))
        return -ENOMEM;
    return append_line(r, name, value);
}

int mk_request_set_header(struct mk_request *r, mk_str name, mk_str value)
{
    return change_header(r, name, value, true);
}

int mk_request_add_header(struct mk_request *r, mk_str name, mk_str value)
{
    return change_header(r, name, value, false);
}

int mk_request_remove_header(struct mk_request *r, mk_str name)
{
    if (!mk_request_header_is_changeable(name, true))
        return -EINVAL;
    if (override_name(r, name))
        return -ENOMEM;
    if (!has_line(&r->fields, name))
        return 0;
    if (copy_received_headers(r))
        return -ENOMEM;
    remove_lines(r, name);
    return 0;
}

/* Gives the request its own copy of the changed headers. Returns 0 or -ENOMEM. */
static mk_err copy_changed_headers(struct mk_request *r)
{
    struct mk_request_header_changes *before = r->extras->header_changes;
    r->extras->header_changes = mk_arena_alloc(r->arena, sizeof *before);
    if (r->extras->header_changes)
        *r->extras->header_changes = *before;
    if (r->extras->header_changes && grow_headers(r) == 0)
        return 0;
    r->extras->header_changes = before;
    return -ENOMEM;
}

mk_err mk_request_save_headers(struct mk_request *r, const struct mk_request_saved_headers **out)
{
    *out = NULL;
    if (!mk_request_header_changes(r))
        return 0;
    struct mk_request_saved_headers *saved = mk_arena_alloc(r->arena, sizeof *saved);
    if (!saved)
        return -ENOMEM;
    *saved = (struct mk_request_saved_headers){.fields = r->fields, .changes = r->extras->header_changes};
    *out = saved;
    return copy_changed_headers(r);
}

mk_err mk_request_restore_saved_headers(struct mk_request *r, const struct mk_request_saved_headers *saved)
{
    mk_request_restore_headers(r);
    if (!saved)
        return 0;
    r->fields = saved->fields;
    r->extras->header_changes = saved->changes;
    return copy_changed_headers(r);
}

mk_str mk_request_received_header(const struct mk_request *r, mk_str name)
{
    return mk_headers_find(mk_request_received_headers(r), name);
}

mk_str mk_request_single_received_header(const struct mk_request *r, mk_str name)
{
    const struct mk_headers *fields = mk_request_received_headers(r);
    mk_str value = MK_STR_NULL;
    for (unsigned i = 0; i < fields->n; i++) {
        if (!mk_str_eq_nocase(fields->at[i].name, name))
            continue;
        if (value.p)
            return MK_STR_NULL;
        value = fields->at[i].value;
    }
    return value;
}

/* ---- Headers of the server ---- */

static bool hook_has_set(const struct mk_request *r, mk_str name)
{
    for (unsigned i = 0; i < r->fields.n; i++)
        if (mk_request_header_is_set(r, i) && mk_str_eq_nocase(r->fields.at[i].name, name))
            return true;
    return false;
}

int mk_request_set_context_header(struct mk_request *r, mk_str name, mk_str value)
{
    if (hook_has_set(r, name))
        return 0;
    return value.p ? mk_request_set_header(r, name, value) : mk_request_remove_header(r, name);
}
