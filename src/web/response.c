/* SPDX-License-Identifier: Apache-2.0 */
#include "web/response.h"

#include "base/assert.h"

void mk_response_init(struct mk_response *r, struct mk_arena *arena)
{
    r->arena = arena;
    r->status = 0;
    r->sealed = false;
    r->n_blocks = r->n_fields = 0;
    r->cap_fields = MK_RESPONSE_FIRST_FIELDS;
    r->fields = r->first_fields;
    mk_content_init(&r->content);
}

void mk_response_reset(struct mk_response *r)
{
    MK_ASSERT(!r->sealed);
    mk_content_fini(&r->content);
    mk_response_init(r, r->arena);
}

int mk_response_set_status(struct mk_response *r, unsigned status)
{
    if (r->sealed)
        return -EALREADY;
    if (status < 200 || status > 599)
        return -EINVAL;
    r->status = status;
    return 0;
}

unsigned mk_response_status(const struct mk_response *r)
{
    return r->status ? r->status : 200;
}

void mk_response_add_block(struct mk_response *r, const struct mk_field_block *block)
{
    MK_ASSERT(r->n_blocks < MK_RESPONSE_BLOCKS);
    r->blocks[r->n_blocks++] = block;
}

static bool grow(struct mk_response *r)
{
    struct mk_field *more = mk_arena_alloc(r->arena, sizeof *more * r->cap_fields * 2);
    if (!more)
        return false;
    memcpy(more, r->fields, sizeof *more * r->n_fields);
    r->fields = more;
    r->cap_fields *= 2;
    return true;
}

bool mk_response_add_ready(struct mk_response *r, mk_str name, mk_str value)
{
    if (r->n_fields == r->cap_fields && !grow(r))
        return false;
    r->fields[r->n_fields++] = (struct mk_field){.name = name, .value = value};
    return true;
}

static bool is_ours(mk_str name)
{
    enum mk_field_id id = mk_field_find_id(name);
    return id == MK_FIELD_CONTENT_LENGTH || id == MK_FIELD_TRANSFER_ENCODING || id == MK_FIELD_CONNECTION ||
           id == MK_FIELD_DATE || id == MK_FIELD_SERVER || id == MK_FIELD_KEEP_ALIVE ||
           id == MK_FIELD_UPGRADE;
}

int mk_response_add(struct mk_response *r, mk_str name, mk_str value)
{
    if (r->sealed)
        return -EALREADY;
    if (!mk_is_token(name) || !mk_is_field_value(value) || is_ours(name))
        return -EINVAL;
    name = mk_arena_copy(r->arena, name);
    value = mk_arena_copy(r->arena, value);
    return name.p && value.p && mk_response_add_ready(r, name, value) ? 0 : -ENOMEM;
}

static mk_str find_in(const struct mk_field *fields, unsigned n, mk_str name)
{
    for (unsigned i = 0; i < n; i++)
        if (mk_str_eq_nocase(fields[i].name, name))
            return fields[i].value;
    return (mk_str){NULL, 0};
}

mk_str mk_response_find(const struct mk_response *r, mk_str name)
{
    for (unsigned i = 0; i < r->n_blocks; i++) {
        mk_str found = find_in(r->blocks[i]->fields, r->blocks[i]->n, name);
        if (found.p)
            return found;
    }
    return find_in(r->fields, r->n_fields, name);
}

int mk_response_set_static(struct mk_response *r, mk_str text)
{
    if (r->sealed)
        return -EALREADY;
    mk_content_fini(&r->content);
    return mk_content_add_text(&r->content, r->arena, text) ? 0 : -ENOMEM;
}

int mk_response_set_text(struct mk_response *r, mk_str text)
{
    if (r->sealed)
        return -EALREADY;
    mk_str copy = mk_arena_copy(r->arena, text);
    return copy.p ? mk_response_set_static(r, copy) : -ENOMEM;
}

int mk_response_set_source(struct mk_response *r, const struct mk_source_ops *ops, void *ctx, int64_t length)
{
    if (r->sealed || length < MK_LENGTH_UNKNOWN) {
        if (ops->close)
            ops->close(ctx);
        return r->sealed ? -EALREADY : -EINVAL;
    }
    mk_content_set_source(&r->content, ops, ctx, length < 0 ? MK_CONTENT_UNKNOWN : (uint64_t)length);
    return 0;
}
