/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a spooled multipart form: collects its fields, and records where its files are. */
#include <errno.h>
#include <monkey/form.h>
#include <monkey/spool.h>

enum { PIECE = 4096, ARRAY_FIRST = 4, MESSAGE_MAX = 256 };

struct form_collector {
    const struct mk_allocator *memory;
    struct mk_multipart *parts;
    struct mk_form_limits limits;
    struct mk_form_field *fields;
    struct mk_upload *uploads;
    size_t n_fields, cap_fields, n_uploads, cap_uploads, bytes;
    struct mk_upload file; /* the part that is being parsed, if it is a file */
    bool is_file, began;
    mk_str name;
    struct mk_buf value;
    const char *error_text; /* the violated limit; NULL: the parser describes the error */
};

/* Returns a NUL-terminated copy; absent: `s` is absent, or out of memory. */
static mk_str copy_str(struct form_collector *r, mk_str s)
{
    char *p = s.p ? (char *)r->memory->alloc(r->memory->ctx, s.len + 1) : NULL;
    if (!p)
        return MK_STR_NULL;
    if (s.len)
        memcpy(p, s.p, s.len);
    p[s.len] = '\0';
    return mk_str_of(p, s.len);
}

/* Makes space for another element: returns the array, or a larger copy; NULL if out of memory. */
static void *grow_array(struct form_collector *r, void *array, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return array;
    *cap = *cap ? *cap * 2 : ARRAY_FIRST;
    char *larger = mk_allocator_zalloc(r->memory, *cap, size);
    if (larger && n)
        memcpy(larger, array, n * size);
    return larger;
}

static int fail_with_limit(struct form_collector *r, const char *text)
{
    r->error_text = text;
    return -EMSGSIZE;
}

static int on_part_begin(void *ctx, const struct mk_multipart_part *part)
{
    struct form_collector *r = ctx;
    r->is_file = part->file_name.p;
    r->began = false;
    r->name = copy_str(r, part->name);
    r->file = (struct mk_upload){.name = r->name,
                                 .file_name = copy_str(r, part->file_name),
                                 .content_type = copy_str(r, part->content_type)};
    mk_buf_clear(&r->value);
    r->bytes += part->name.len;
    bool is_complete = r->name.p && (!r->is_file || r->file.file_name.p);
    return is_complete && (!part->content_type.p || r->file.content_type.p) ? 0 : -ENOMEM;
}

static int on_part_data(void *ctx, mk_str bytes)
{
    struct form_collector *r = ctx;
    if (r->is_file) {
        if (!r->began)
            r->file.offset = mk_multipart_offset(r->parts);
        r->began = true;
        r->file.size += bytes.len;
        return 0;
    }
    mk_buf_add(&r->value, bytes);
    r->bytes += bytes.len;
    if (r->value.len > r->limits.value || r->bytes > r->limits.size)
        return fail_with_limit(r, "the fields are too long");
    return r->value.failed ? -ENOMEM : 0;
}

static int add_upload(struct form_collector *r)
{
    if (r->file.size == 0 && r->file.file_name.len == 0)
        return 0; /* the user chose no file */
    r->uploads = grow_array(r, r->uploads, r->n_uploads, &r->cap_uploads, sizeof *r->uploads);
    if (!r->uploads)
        return -ENOMEM;
    r->uploads[r->n_uploads++] = r->file;
    return 0;
}

static int on_part_end(void *ctx)
{
    struct form_collector *r = ctx;
    if (r->is_file)
        return add_upload(r);
    if (r->n_fields == r->limits.fields || r->name.len > r->limits.name)
        return fail_with_limit(r, "too many fields, or a name is too long");
    r->fields = grow_array(r, r->fields, r->n_fields, &r->cap_fields, sizeof *r->fields);
    mk_str value = r->fields ? copy_str(r, mk_buf_str(&r->value)) : MK_STR_NULL;
    if (!value.p)
        return -ENOMEM;
    r->fields[r->n_fields++] = (struct mk_form_field){r->name, value};
    return 0;
}

static int feed_spool(const struct mk_spool *body, struct mk_multipart *parts)
{
    struct mk_buf piece = mk_buf_growing(PIECE);
    uint64_t at = 0;
    ssize_t n = 0;
    int e = mk_buf_reserve(&piece, PIECE) ? 0 : -ENOMEM;
    while (!e && (n = mk_spool_read(body, piece.p, PIECE, at)) > 0) {
        e = mk_multipart_feed(parts, mk_str_of(piece.p, (size_t)n));
        at += (uint64_t)n;
    }
    mk_buf_free(&piece);
    e = !e && n < 0 ? (int)n : e;
    return e ? e : mk_multipart_end(parts);
}

/* Returns a text that says which part violates which rule; absent: no rule was violated. */
static mk_str describe_error(struct form_collector *r)
{
    char room[MESSAGE_MAX];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    size_t n = 0;
    const char *rule = mk_multipart_error(r->parts, &n);
    if (r->error_text)
        mk_buf_addf(&text, "multipart/form-data: %s", r->error_text);
    else if (rule)
        mk_buf_addf(&text, "multipart/form-data, part %zu: %s", n, rule);
    return text.len ? copy_str(r, mk_buf_str(&text)) : MK_STR_NULL;
}

int mk_form_parse_spool(const struct mk_spool *body, mk_str boundary, const struct mk_allocator *memory,
                        const struct mk_form_limits *fields, const struct mk_multipart_limits *files,
                        struct mk_form *out, mk_str *error)
{
    static const struct mk_multipart_ops ops = {
        .part = on_part_begin, .data = on_part_data, .end = on_part_end};
    struct form_collector r = {.memory = memory, .limits = mk_form_limits_of(fields)};
    *out = (struct mk_form){.n = 0};
    *error = MK_STR_NULL;
    r.value = mk_buf_growing(r.limits.value + PIECE);
    r.parts = mk_multipart_new(boundary, files, &ops, &r);
    int e = r.parts ? feed_spool(body, r.parts) : -ENOMEM;
    if (e && r.parts)
        *error = describe_error(&r);
    mk_multipart_free(r.parts);
    mk_buf_free(&r.value);
    if (!e)
        *out = (struct mk_form){
            .fields = r.fields, .n = r.n_fields, .uploads = r.uploads, .n_uploads = r.n_uploads};
    return e;
}
