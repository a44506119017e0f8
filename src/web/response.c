/* SPDX-License-Identifier: Apache-2.0 */
#include "web/response.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/num.h"
#include "files/file_cache.h"
#include "os/fd.h"
#include "web/request_type.h"

/* ---- The body ---- */

void mk_response_body_fini(struct mk_response_body *c)
{
    if (c->source && c->source->close)
        c->source->close(c->source_ctx);
    mk_response_body_init(c);
}

static struct mk_response_body_part *append_part(struct mk_response_body *c, struct mk_arena *arena)
{
    struct mk_response_body_part *p = c->last ? mk_arena_alloc(arena, sizeof *p) : &c->first;
    if (!p)
        return NULL;
    p->next = NULL;
    if (c->last)
        c->last->next = p;
    if (!c->parts)
        c->parts = p;
    c->last = p;
    return p;
}

bool mk_response_body_add_text(struct mk_response_body *c, struct mk_arena *arena, mk_str text)
{
    struct mk_response_body_part *p = append_part(c, arena);
    if (!p)
        return false;
    p->file = NULL;
    p->bytes = text;
    c->length += text.len;
    return true;
}

bool mk_response_body_add_file(struct mk_response_body *c, struct mk_arena *arena, struct mk_open_file *f,
                               uint64_t offset, uint64_t len)
{
    c->origin = f;
    if (f->content.p)
        return mk_response_body_add_text(c, arena,
                                         mk_str_first(mk_str_skip(f->content, (size_t)offset), (size_t)len));
    struct mk_response_body_part *p = append_part(c, arena);
    if (!p)
        return false;
    p->file = f;
    p->offset = offset;
    p->len = len;
    p->cached_up_to = 0;
    p->missed = false;
    c->length += len;
    return true;
}

void mk_response_body_set_source(struct mk_response_body *c, const struct mk_body_source_ops *ops, void *ctx,
                                 uint64_t length)
{
    mk_response_body_fini(c);
    c->form = MK_RESPONSE_BODY_SOURCE;
    c->source = ops;
    c->source_ctx = ctx;
    c->length = length;
}

void mk_response_body_move(struct mk_response_body *to, struct mk_response_body *from)
{
    *to = *from;
    if (to->parts == &from->first)
        to->parts = &to->first;
    if (to->last == &from->first)
        to->last = &to->first;
    mk_response_body_init(from);
}

static bool part_is_spent(const struct mk_response_body_part *p)
{
    return p->file ? p->len == 0 : p->bytes.len == 0;
}

struct mk_response_body_part *mk_response_body_current_part(struct mk_response_body *c)
{
    while (c->parts && part_is_spent(c->parts))
        c->parts = c->parts->next;
    return c->parts;
}

void mk_response_body_advance(struct mk_response_body *c, uint64_t n)
{
    struct mk_response_body_part *p = c->parts;
    MK_ASSERT(p && n <= (p->file ? p->len : p->bytes.len));
    if (p->file) {
        p->offset += n;
        p->len -= n;
    } else {
        p->bytes = mk_str_skip(p->bytes, (size_t)n);
    }
}

static ssize_t read_file_part(const struct mk_response_body_part *p, char *buf, size_t cap)
{
    ssize_t n = -EINVAL;
    if (p->offset >= p->cached_up_to)
        n = mk_file_read_nowait(p->file->fd, buf, cap, p->offset);
    if (n < 0 && n != -EAGAIN) { /* cached, or the file system may not support RWF_NOWAIT */
        n = pread(p->file->fd, buf, cap, (off_t)p->offset);
        n = n < 0 ? mk_err_last() : n;
    }
    if (n)
        return n;
    mk_file_cache_invalidate(p->file); /* the file was truncated: the next request reopens it */
    return -EIO;
}

static ssize_t read_part(const struct mk_response_body_part *p, char *buf, size_t cap)
{
    if (!p->file) {
        size_t n = mk_min(cap, p->bytes.len);
        memcpy(buf, p->bytes.p, n);
        return (ssize_t)n;
    }
    return read_file_part(p, buf, (size_t)(p->len < cap ? p->len : cap));
}

ssize_t mk_response_body_read(struct mk_response_body *c, char *buf, size_t cap)
{
    if (c->source)
        return c->source->read(c->source_ctx, buf, cap);
    struct mk_response_body_part *p = mk_response_body_current_part(c);
    if (!p)
        return 0;
    ssize_t n = read_part(p, buf, cap);
    if (n == -EAGAIN)
        p->missed = true;
    if (n > 0)
        mk_response_body_advance(c, (uint64_t)n);
    return n;
}

/* ---- Status and headers ---- */

void mk_response_init(struct mk_response *r, struct mk_arena *arena)
{
    r->arena = arena;
    r->status = 0;
    r->sealed = r->sent = r->no_raw = r->is_error_page = false;
    r->failure_status = r->own = r->reset_code = 0;
    r->n_blocks = r->n_fields = 0;
    r->trailers = NULL;
    r->cap_fields = MK_RESPONSE_FIRST_FIELDS;
    r->fields = r->first_fields;
    mk_response_body_init(&r->content);
}

void mk_response_reset(struct mk_response *r)
{
    bool no_raw = r->no_raw;
    MK_ASSERT(!r->sealed);
    mk_response_body_fini(&r->content);
    mk_response_init(r, r->arena);
    r->no_raw = no_raw;
}

/* Are the status and body final? */
static bool is_body_final(const struct mk_response *r)
{
    return r->sealed || mk_response_body_is_tunnel(&r->content);
}

int mk_response_set_status(struct mk_response *r, unsigned status)
{
    if (is_body_final(r))
        return -EALREADY;
    if (status && (status < 200 || status > 599))
        return -EINVAL;
    r->status = status;
    return 0;
}

int mk_response_fail(struct mk_response *r, unsigned status)
{
    if (status < 400 || status > 599)
        return -EINVAL;
    r->failure_status = (uint16_t)status;
    return 0;
}

void mk_response_set_reset_code(struct mk_response *r, uint32_t code)
{
    enum { LAST_KNOWN = 0xd };
    r->reset_code = code <= LAST_KNOWN ? (uint8_t)code : 0;
}

bool mk_response_is_error_page(const struct mk_response *r)
{
    return r->is_error_page;
}

unsigned mk_response_status(const struct mk_response *r)
{
    return r->status ? r->status : 200;
}

bool mk_response_has_status(const struct mk_response *r)
{
    return r->status != 0;
}

void mk_response_add_header_block(struct mk_response *r, const struct mk_header_block *block)
{
    MK_ASSERT(r->n_blocks < MK_RESPONSE_BLOCKS);
    r->blocks[r->n_blocks++] = block;
}

void mk_response_invalidate_cached_head(struct mk_response *r)
{
    static const struct mk_header_block nothing = {.text = MK_STR_INIT("")};
    if (r->n_blocks == 1 && r->blocks[0]->ready.p)
        mk_response_add_header_block(r, &nothing); /* `ready` is valid only for a single block */
}

/* ---- Fields ---- */

static bool grow_headers(struct mk_response *r)
{
    unsigned cap = r->cap_fields < 4 ? 8 : r->cap_fields * 2;
    struct mk_header_field *more = mk_arena_alloc(r->arena, sizeof *more * cap);
    if (!more)
        return false;
    memcpy(more, r->fields, sizeof *more * r->n_fields);
    r->fields = more;
    r->cap_fields = cap;
    return true;
}

bool mk_response_add_header_unchecked(struct mk_response *r, mk_str name, mk_str value)
{
    if (r->n_fields == r->cap_fields && !grow_headers(r))
        return false;
    r->fields[r->n_fields++] = (struct mk_header_field){.name = name, .value = value};
    return true;
}

static bool is_reserved_header(enum mk_header_id id)
{
    return id == MK_HEADER_CONTENT_LENGTH || id == MK_HEADER_TRANSFER_ENCODING ||
           id == MK_HEADER_CONNECTION || id == MK_HEADER_KEEP_ALIVE || id == MK_HEADER_UPGRADE ||
           id == MK_HEADER_SEC_WEBSOCKET_ACCEPT;
}

static uint8_t own_header_flag(enum mk_header_id id)
{
    return id == MK_HEADER_DATE      ? MK_RESPONSE_OWN_DATE
           : id == MK_HEADER_SERVER  ? MK_RESPONSE_OWN_SERVER
           : id == MK_HEADER_TRAILER ? MK_RESPONSE_OWN_TRAILER
                                     : 0;
}

/* Like own_header_flag(), but by name. */
static uint8_t own_header_flag_of_name(mk_str name)
{
    bool may_be = name.len == 4 || name.len == 6 || name.len == 7; /* Date, Server, Trailer */
    return may_be ? own_header_flag(mk_header_find_id(name)) : 0;
}

static int check_header(const struct mk_response *r, mk_str name, mk_str value, enum mk_header_id id)
{
    if (r->sealed)
        return -EALREADY;
    bool is_name = id == MK_HEADER_OTHER ? mk_is_token(name) : !is_reserved_header(id);
    return is_name && mk_is_header_value(value) ? 0 : -EINVAL;
}

static int append_header(struct mk_response *r, mk_str name, mk_str value, uint8_t own)
{
    if (!mk_response_add_header_unchecked(r, name, value))
        return -ENOMEM;
    r->own |= own;
    return 0;
}

int mk_response_add_header(struct mk_response *r, mk_str name, mk_str value)
{
    enum mk_header_id id = mk_header_find_id(name);
    uint8_t own = own_header_flag(id);
    if (own & r->own & (MK_RESPONSE_OWN_DATE | MK_RESPONSE_OWN_SERVER))
        return mk_response_set_header(r, name, value);
    int e = check_header(r, name, value, id);
    if (e)
        return e;
    char *copy = mk_arena_alloc(r->arena, name.len + value.len);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, name.p, name.len);
    memcpy(copy + name.len, value.len ? value.p : "", value.len);
    return append_header(r, mk_str_of(copy, name.len), mk_str_of(copy + name.len, value.len), own);
}

int mk_response_add_header_nocopy(struct mk_response *r, mk_str name, mk_str value)
{
    uint8_t own = own_header_flag_of_name(name);
    if (r->sealed)
        return -EALREADY;
    if (own & r->own & (MK_RESPONSE_OWN_DATE | MK_RESPONSE_OWN_SERVER))
        return mk_response_set_header(r, name, value);
    return append_header(r, name, value, own);
}

static int append_headers(struct mk_response *r, const struct mk_header *lines, size_t n)
{
    int e = 0;
    for (size_t i = 0; i < n && !e; i++)
        e = mk_response_add_header_nocopy(r, lines[i].name, lines[i].value);
    return e;
}

struct header_block_copy {
    struct mk_header_block block;
    struct mk_header_field fields[];
};

int mk_response_add_headers(struct mk_response *r, mk_str text, const struct mk_header *lines, size_t n)
{
    struct header_block_copy *b = mk_arena_alloc(r->arena, sizeof *b + n * sizeof *b->fields);
    uint8_t own = r->own & (MK_RESPONSE_OWN_DATE | MK_RESPONSE_OWN_SERVER), twice = 0;
    if (r->sealed || !b)
        return r->sealed ? -EALREADY : -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        uint8_t one = own_header_flag_of_name(lines[i].name);
        twice |= own & one;
        own |= one;
        b->fields[i] = (struct mk_header_field){.name = lines[i].name, .value = lines[i].value};
    }
    if (r->n_blocks || twice) /* there is a block already, or Date or Server must be replaced */
        return append_headers(r, lines, n);
    b->block = (struct mk_header_block){.text = text, .fields = b->fields, .n = (unsigned)n};
    mk_response_add_header_block(r, &b->block);
    r->own |= own;
    return 0;
}

static mk_str find_header_in(const struct mk_header_field *fields, unsigned n, mk_str name)
{
    char first = name.len ? mk_char_lower(name.p[0]) : '\0';
    for (unsigned i = 0; i < n; i++) {
        mk_str other = fields[i].name;
        if (other.len == name.len && other.len && mk_char_lower(other.p[0]) == first &&
            mk_str_eq_nocase(other, name))
            return fields[i].value;
    }
    return (mk_str){NULL, 0};
}

static mk_str find_header_in_blocks(const struct mk_response *r, mk_str name)
{
    mk_str found = {NULL, 0};
    for (unsigned i = 0; i < r->n_blocks && !found.p; i++)
        found = find_header_in(r->blocks[i]->fields, r->blocks[i]->n, name);
    return found;
}

mk_str mk_response_header(const struct mk_response *r, mk_str name)
{
    mk_str found = find_header_in_blocks(r, name);
    return found.p ? found : find_header_in(r->fields, r->n_fields, name);
}

bool mk_response_header_at(const struct mk_response *r, size_t i, mk_str *name, mk_str *value)
{
    const struct mk_header_field *found = NULL;
    for (unsigned b = 0; b < r->n_blocks && !found; b++) {
        if (i < r->blocks[b]->n)
            found = &r->blocks[b]->fields[i];
        else
            i -= r->blocks[b]->n;
    }
    if (!found && i < r->n_fields)
        found = &r->fields[i];
    if (!found)
        return false;
    *name = found->name;
    *value = found->value;
    return true;
}

int mk_response_add_default(struct mk_response *r, mk_str name, mk_str value)
{
    bool is_empty = r->n_fields + r->n_blocks == 0;
    return !is_empty && mk_response_header(r, name).p ? 0 : mk_response_add_header_nocopy(r, name, value);
}

int mk_response_begin_sse(struct mk_response *r)
{
    static const struct mk_header headers[] = {
        {MK_STR_INIT("Content-Type"), MK_STR_INIT("text/event-stream")},
        {MK_STR_INIT("Cache-Control"), MK_STR_INIT("no-store")},
        {MK_STR_INIT("X-Accel-Buffering"), MK_STR_INIT("no")},
    };
    int e = 0;
    for (size_t i = 0; !e && i < MK_LEN(headers); i++)
        e = mk_response_set_header(r, headers[i].name, headers[i].value);
    return e;
}

bool mk_response_merge_default_block(struct mk_response *r, const struct mk_header_block *block)
{
    mk_str type = MK_STR("Content-Type"), caching = MK_STR("Cache-Control");
    if (!mk_response_header(r, type).p && !mk_response_header(r, caching).p) {
        mk_response_add_header_block(r, block);
        return true;
    }
    bool ok = true;
    for (unsigned i = 0; ok && i < block->n; i++) {
        mk_str name = block->fields[i].name, value = block->fields[i].value;
        bool is_default = mk_str_eq_nocase(name, type) || mk_str_eq_nocase(name, caching);
        ok = is_default ? mk_response_add_default(r, name, value) == 0
                        : mk_response_add_header_unchecked(r, name, value);
    }
    return ok;
}

/* Copies the headers of all blocks before a change, because other responses share the blocks. */
static bool copy_block_headers(struct mk_response *r)
{
    unsigned n = 0, cap = r->n_fields + MK_RESPONSE_FIRST_FIELDS;
    for (unsigned i = 0; i < r->n_blocks; i++)
        cap += r->blocks[i]->n;
    struct mk_header_field *own = mk_arena_alloc(r->arena, sizeof *own * cap);
    if (!own)
        return false;
    for (unsigned i = 0; i < r->n_blocks; i++)
        for (unsigned j = 0; j < r->blocks[i]->n; j++)
            own[n++] = r->blocks[i]->fields[j];
    memcpy(own + n, r->fields, sizeof *own * r->n_fields);
    r->fields = own;
    r->n_fields += n;
    r->cap_fields = cap;
    r->n_blocks = 0;
    return true;
}

/* Removes the headers with that name, from index i on. */
static void remove_header_from(struct mk_response *r, unsigned i, mk_str name)
{
    unsigned kept = i;
    for (; i < r->n_fields; i++)
        if (!mk_str_eq_nocase(r->fields[i].name, name))
            r->fields[kept++] = r->fields[i];
    r->n_fields = kept;
}

int mk_response_remove_header(struct mk_response *r, mk_str name)
{
    if (r->sealed)
        return -EALREADY;
    if (find_header_in_blocks(r, name).p && !copy_block_headers(r))
        return -ENOMEM;
    remove_header_from(r, 0, name);
    r->own &= (uint8_t)(~(own_header_flag(mk_header_find_id(name)) &
                          (MK_RESPONSE_OWN_DATE | MK_RESPONSE_OWN_SERVER)));
    return 0;
}

int mk_response_set_header(struct mk_response *r, mk_str name, mk_str value)
{
    enum mk_header_id id = mk_header_find_id(name);
    int e = check_header(r, name, value, id);
    if (e)
        return e;
    name = mk_arena_copy(r->arena, name);
    value = mk_arena_copy(r->arena, value);
    if (!name.p || !value.p || (find_header_in_blocks(r, name).p && !copy_block_headers(r)))
        return -ENOMEM;
    for (unsigned i = 0; i < r->n_fields; i++) {
        if (mk_str_eq_nocase(r->fields[i].name, name)) {
            r->fields[i] = (struct mk_header_field){.name = name, .value = value};
            remove_header_from(r, i + 1, name);
            return 0;
        }
    }
    return append_header(r, name, value, own_header_flag(id));
}

int mk_response_send_1xx(struct mk_request *request, const struct mk_response *r, unsigned status,
                         const struct mk_header *fields, size_t n)
{
    int e = r->sealed ? -EALREADY : status < 102 || status > 199 ? -EINVAL : 0;
    for (size_t i = 0; i < n && !e; i++)
        e = check_header(r, fields[i].name, fields[i].value, mk_header_find_id(fields[i].name));
    if (e)
        return e;
    if (request->version < 11 || !request->ops || !request->ops->interim)
        return -EOPNOTSUPP;
    return request->ops->interim(request->ops_ctx, status, fields, n);
}

/* ---- Body ---- */

int64_t mk_response_length(const struct mk_response *r)
{
    return r->content.length == MK_RESPONSE_BODY_UNKNOWN ? MK_LENGTH_UNKNOWN : (int64_t)r->content.length;
}

bool mk_response_is_file(const struct mk_response *r)
{
    return r->content.origin != NULL;
}

bool mk_response_file_id(const struct mk_response *r, struct mk_file_id *id)
{
    const struct mk_open_file *f = r->content.origin;
    if (!f || f->ino == 0 || r->content.length != f->size)
        return false;
    *id = mk_open_file_id(f);
    return true;
}

int mk_response_set_body_nocopy(struct mk_response *r, mk_str text)
{
    if (is_body_final(r))
        return -EALREADY;
    mk_response_body_fini(&r->content);
    mk_response_invalidate_cached_head(r);
    return mk_response_body_add_text(&r->content, r->arena, text) ? 0 : -ENOMEM;
}

int mk_response_set_body(struct mk_response *r, mk_str text)
{
    if (is_body_final(r))
        return -EALREADY;
    mk_str copy = mk_arena_copy(r->arena, text);
    return copy.p ? mk_response_set_body_nocopy(r, copy) : -ENOMEM;
}

int mk_response_set_body_owned(struct mk_response *r, mk_str text, void (*free_data)(void *data), void *data)
{
    if (!free_data)
        return -EINVAL;
    if (is_body_final(r) || !mk_arena_add_cleanup(r->arena, free_data, data)) {
        free_data(data);
        return is_body_final(r) ? -EALREADY : -ENOMEM;
    }
    return mk_response_set_body_nocopy(r, text); /* on -ENOMEM, the cleanup frees the data */
}

static void release_file(void *file)
{
    mk_open_file_release(file);
}

int mk_response_set_body_file(struct mk_response *r, int fd, uint64_t offset, uint64_t length)
{
    uint64_t end;
    bool odd = fcntl(fd, F_GETFD) < 0 || !mk_num_add(offset, length, &end) || end > INT64_MAX;
    struct mk_open_file *f = is_body_final(r) || odd ? NULL : mk_open_file_from_fd(fd, end);
    if (!f) {
        mk_fd_close(&fd);
        return is_body_final(r) ? -EALREADY : odd ? -EINVAL : -ENOMEM;
    }
    if (!mk_arena_add_cleanup(r->arena, release_file, f)) {
        mk_open_file_release(f);
        return -ENOMEM;
    }
    mk_response_body_fini(&r->content);
    mk_response_invalidate_cached_head(r);
    return mk_response_body_add_file(&r->content, r->arena, f, offset, length) ? 0 : -ENOMEM;
}

/* Sets the source, of which `r` takes ownership; closes it on failure. `e`: error found by the caller, or
 * 0. */
static int set_body_source(struct mk_response *r, const struct mk_body_source_ops *ops, void *ctx,
                           uint64_t length, int e)
{
    if (is_body_final(r))
        e = -EALREADY;
    if (!ops || !ops->read)
        e = -EINVAL;
    if (!e) {
        mk_response_invalidate_cached_head(r);
        mk_response_body_set_source(&r->content, ops, ctx, length);
    } else if (ops && ops->close) {
        ops->close(ctx);
    }
    return e;
}

int mk_response_set_body_source(struct mk_response *r, const struct mk_body_source_ops *ops, void *ctx,
                                int64_t length)
{
    uint64_t len = length < 0 ? MK_RESPONSE_BODY_UNKNOWN : (uint64_t)length;
    return set_body_source(r, ops, ctx, len, length < MK_LENGTH_UNKNOWN ? -EINVAL : 0);
}

int mk_response_set_raw_source(struct mk_response *r, const struct mk_body_source_ops *ops, void *ctx)
{
    int e = set_body_source(r, ops, ctx, MK_RESPONSE_BODY_UNKNOWN, r->no_raw ? -EOPNOTSUPP : 0);
    if (!e)
        r->content.form = MK_RESPONSE_BODY_RAW;
    return e;
}

bool mk_response_was_sent(const struct mk_response *r)
{
    return r->sent;
}

bool mk_response_will_send_body(const struct mk_request *request, const struct mk_response *r)
{
    return request->target->method != MK_METHOD_HEAD && mk_status_has_content(mk_response_status(r)) &&
           r->content.length > 0 && !mk_response_body_is_raw(&r->content) &&
           !mk_response_body_is_tunnel(&r->content);
}
