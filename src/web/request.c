/* SPDX-License-Identifier: Apache-2.0 */
#include "web/request.h"

#include "base/err.h"

enum mk_method mk_request_method(const struct mk_request *r)
{
    return r->method;
}

mk_str mk_request_method_text(const struct mk_request *r)
{
    return r->method_text;
}

unsigned mk_request_version(const struct mk_request *r)
{
    return r->version;
}

mk_str mk_request_target(const struct mk_request *r)
{
    return r->target_text;
}

mk_str mk_request_path(const struct mk_request *r)
{
    return r->path;
}

mk_str mk_request_query(const struct mk_request *r)
{
    return r->target.query;
}

mk_str mk_request_host(const struct mk_request *r)
{
    return r->host;
}

mk_str mk_request_field(const struct mk_request *r, mk_str name)
{
    return mk_fields_find(&r->fields, name);
}

int mk_request_field_at(const struct mk_request *r, size_t i, mk_str *name, mk_str *value)
{
    if (i >= r->fields.n)
        return 0;
    *name = r->fields.at[i].name;
    *value = r->fields.at[i].value;
    return 1;
}

mk_str mk_request_peer(struct mk_request *r)
{
    char room[MK_ADDR_TEXT];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    mk_peer_print(r->peer, &text);
    return mk_arena_copy(r->arena, mk_buf_str(&text));
}

int64_t mk_request_length(const struct mk_request *r)
{
    return r->length == MK_REQUEST_LENGTH_UNKNOWN ? -1 : (int64_t)r->length;
}

ssize_t mk_request_read(struct mk_request *r, char *room, size_t cap)
{
    if (!r->ops || !r->length)
        return 0;
    return cap ? r->ops->read(r->ops_ctx, room, cap) : -EINVAL;
}

void mk_request_resume(struct mk_request *r)
{
    if (r->ops)
        r->ops->resume(r->ops_ctx);
}

void *mk_request_alloc(struct mk_request *r, size_t size)
{
    return mk_arena_alloc(r->arena, size);
}

int mk_request_on_end(struct mk_request *r, void (*fn)(void *data), void *data)
{
    return mk_arena_on_end(r->arena, fn, data) ? 0 : -ENOMEM;
}

void mk_request_set_data(struct mk_request *r, void *data)
{
    r->data = data;
}

void *mk_request_data(const struct mk_request *r)
{
    return r->data;
}
