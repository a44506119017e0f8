/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a request, received once and attached to the request. */
#include <duda.h>
#include <errno.h>

#include "service/forms.h"
#include "service/memory.h"
#include "service/suspend.h"

enum { PIECE = 4096, FILES_FIRST = 4 };

static const char key; /* key of the form attached to the request */

/* ---- Memory that lives as long as the request ---- */

struct request_string {
    char *p;
    size_t len;
};

static void fill_request_string(void *data)
{
    struct request_string *s = data;
    duda_memory_fill_freed(s->p, s->len);
}

static void fill_at_request_end(struct duda_ctx *d, char *p, size_t len)
{
    struct request_string *s =
        duda_memory_is_dev_mode(d->worker_ctx) ? mk_request_alloc(d->request, sizeof *s) : NULL;
    if (!s)
        return;
    *s = (struct request_string){p, len};
    (void)!mk_request_add_cleanup(d->request, fill_request_string, s);
}

static void *alloc_from_request(void *ctx, size_t size)
{
    struct duda_ctx *d = ctx;
    char *p = mk_request_alloc(d->request, size);
    if (p)
        fill_at_request_end(d, p, size);
    return p;
}

static struct duda_allocator request_allocator(struct duda_ctx *d)
{
    return (struct duda_allocator){alloc_from_request, d};
}

/* ---- Parts ---- */

/* State of the parser while the parts of a form arrive. */
struct multipart_form_parser {
    struct duda_ctx *d;
    struct duda_parsed_form *form;
    struct duda_multipart *parts;
    struct duda_form_limits limits;
    struct duda_pair *pairs;
    size_t n_pairs, cap_pairs, cap_files, bytes;
    struct duda_upload file;
    bool is_file, began;
    mk_str name;
    struct mk_buf value;
};

/* A NUL-terminated copy. */
static mk_str copy_to_request(struct duda_ctx *d, mk_str s)
{
    char *p = s.p ? mk_request_alloc(d->request, s.len + 1) : NULL;
    if (!p)
        return MK_STR_NULL;
    if (s.len)
        memcpy(p, s.p, s.len);
    p[s.len] = '\0';
    fill_at_request_end(d, p, s.len);
    return mk_str_of(p, s.len);
}

/* Makes space for another element: returns the array, or a larger copy; NULL if out of memory. */
static void *grow_array(struct duda_ctx *d, void *array, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return array;
    *cap = *cap ? *cap * 2 : FILES_FIRST;
    char *larger = mk_request_alloc(d->request, *cap * size);
    if (larger && n)
        memcpy(larger, array, n * size);
    return larger;
}

static int on_part_begin(void *ctx, const struct duda_part *part)
{
    struct multipart_form_parser *r = ctx;
    r->is_file = part->file_name.p;
    r->began = false;
    r->name = copy_to_request(r->d, part->name);
    r->file = (struct duda_upload){.name = r->name,
                                   .file_name = copy_to_request(r->d, part->file_name),
                                   .content_type = copy_to_request(r->d, part->content_type)};
    mk_buf_clear(&r->value);
    r->bytes += part->name.len;
    return r->name.p ? 0 : -ENOMEM;
}

static int on_part_data(void *ctx, mk_str bytes)
{
    struct multipart_form_parser *r = ctx;
    if (r->is_file) {
        if (!r->began)
            r->file.offset = duda_multipart_offset(r->parts);
        r->began = true;
        r->file.size += bytes.len;
        return 0;
    }
    mk_buf_add(&r->value, bytes);
    r->bytes += bytes.len;
    if (r->value.len > r->limits.value || r->bytes > r->limits.size) {
        (void)duda_reason(r->d, -EMSGSIZE, "multipart/form-data: the fields are too long");
        return -EMSGSIZE;
    }
    return r->value.failed ? -ENOMEM : 0;
}

static int add_uploaded_file(struct multipart_form_parser *r)
{
    struct duda_parsed_form *f = r->form;
    if (r->file.size == 0 && r->file.file_name.len == 0)
        return 0; /* the user chose no file */
    f->files = grow_array(r->d, f->files, f->n_files, &r->cap_files, sizeof *f->files);
    if (!f->files)
        return -ENOMEM;
    f->files[f->n_files++] = r->file;
    return 0;
}

static int on_part_end(void *ctx)
{
    struct multipart_form_parser *r = ctx;
    if (r->is_file)
        return add_uploaded_file(r);
    if (r->n_pairs == r->limits.fields || r->name.len > r->limits.name) {
        (void)duda_reason(r->d, -EMSGSIZE, "multipart/form-data: too many fields, or a name is too long");
        return -EMSGSIZE;
    }
    r->pairs = grow_array(r->d, r->pairs, r->n_pairs, &r->cap_pairs, sizeof *r->pairs);
    mk_str value = r->pairs ? copy_to_request(r->d, mk_buf_str(&r->value)) : MK_STR_NULL;
    if (!value.p)
        return -ENOMEM;
    r->pairs[r->n_pairs++] = (struct duda_pair){r->name, value};
    return 0;
}

/* ---- Body ---- */

static int spool_body(struct duda_ctx *d, uint64_t max, struct mk_spool **out)
{
    int e;
    while ((e = mk_spool_request(d->request, max, out)) == -EAGAIN) {
        e = duda_suspend_until(d, DUDA_SUSPEND_FOR_INPUT);
        if (e)
            return e;
    }
    if (e == -EFBIG)
        duda_log(d, MK_LOG_DEBUG, "413: the content exceeds `.size` of the struct duda_multipart_limits");
    return e == -ECONNRESET ? duda_suspend_cancel(d, -ECANCELED) : e < 0 ? (int)mk_spool_status(e) : e;
}

/* Reports which part violates which rule. */
static void set_multipart_reason(struct duda_ctx *d, int e, const struct duda_multipart *parts)
{
    size_t n;
    const char *error = e ? duda_multipart_error(parts, &n) : NULL;
    if (error)
        (void)duda_reason(d, e, "multipart/form-data, part %zu: %s", n, error);
}

static int parse_spooled_parts(struct mk_spool *content, struct duda_multipart *parts)
{
    struct mk_buf piece = mk_buf_growing(PIECE);
    uint64_t at = 0;
    ssize_t n = 0;
    int e = mk_buf_reserve(&piece, PIECE) ? 0 : -ENOMEM;
    while (!e && (n = mk_spool_read(content, piece.p, PIECE, at)) > 0) {
        e = duda_multipart_feed(parts, mk_str_of(piece.p, (size_t)n));
        at += (uint64_t)n;
    }
    mk_buf_free(&piece);
    e = !e && n < 0 ? (int)n : e;
    return e ? e : duda_multipart_end(parts);
}

static int load_multipart_form(struct duda_ctx *d, struct duda_parsed_form *form, mk_str boundary,
                               const struct duda_form_limits *fields,
                               const struct duda_multipart_limits *files)
{
    static const struct duda_multipart_ops ops = {
        .part = on_part_begin, .data = on_part_data, .end = on_part_end};
    struct multipart_form_parser r = {.d = d, .form = form, .limits = duda_form_limits_of(fields)};
    int e = spool_body(d, duda_multipart_limits_of(files).size, &form->content);
    if (e)
        return e;
    r.value = mk_buf_growing(r.limits.value + PIECE);
    r.parts = duda_multipart_new(boundary, files, &ops, &r);
    e = r.parts ? parse_spooled_parts(form->content, r.parts) : -ENOMEM;
    if (r.parts)
        set_multipart_reason(d, e, r.parts);
    duda_multipart_free(r.parts);
    mk_buf_free(&r.value);
    form->fields = (struct duda_form_data){r.pairs, r.n_pairs};
    return e;
}

static int load_urlencoded_form(struct duda_ctx *d, struct duda_parsed_form *form,
                                const struct duda_form_limits *given)
{
    const struct duda_form_limits limits = duda_form_limits_of(given);
    const struct duda_allocator memory = request_allocator(d);
    mk_str text;
    size_t mark = duda_arena_mark(d);
    int e = duda_read_all(d, limits.size, &text);
    if (!e)
        e = duda_form_data_parse(text, &memory, &limits, &form->fields);
    duda_arena_rewind(d, mark);
    if (e == -EBADMSG)
        return duda_reason(d, e, "the form has a %% without two hexadecimal digits");
    return e == -EMSGSIZE
               ? duda_reason(d, e, "the form is too long, has too many fields, or a field is too long")
               : e;
}

int duda_form_check_encoding(struct duda_ctx *d)
{
    mk_str list = duda_header(d, "Content-Encoding"), coding;
    while (list.p && mk_header_list_next(&list, &coding)) {
        if (mk_str_eq_nocase(coding, MK_STR("identity")))
            continue;
        (void)duda_header_set(d, "Accept-Encoding", MK_STR("identity"));
        return duda_reason(d, 415, "the content has the Content-Encoding %.*s, but only identity is accepted",
                           MK_STR_ARG(mk_str_first(coding, 32)));
    }
    return 0;
}

static bool is_media_type(mk_str type, mk_str expected)
{
    size_t end = mk_str_find(type, ';');
    return mk_str_eq_nocase(mk_str_trim(mk_str_first(type, end == MK_STR_NONE ? type.len : end)), expected);
}

static int load_form(struct duda_ctx *d, struct duda_parsed_form *form, const struct duda_form_limits *fields,
                     const struct duda_multipart_limits *files)
{
    mk_str type = duda_header_view(d, "Content-Type"), boundary;
    int coded = duda_form_check_encoding(d);
    if (coded)
        return coded;
    if (is_media_type(type, MK_STR("application/x-www-form-urlencoded")))
        return load_urlencoded_form(d, form, fields);
    if (!is_media_type(type, MK_STR("multipart/form-data")))
        return duda_reason(d, 415,
                           "the content is not a form: its Content-Type is neither multipart/form-data nor "
                           "application/x-www-form-urlencoded");
    return duda_multipart_boundary(type, &boundary)
               ? load_multipart_form(d, form, boundary, fields, files)
               : duda_reason(d, -EBADMSG, "multipart/form-data without a boundary");
}

/* ---- Called by handlers ---- */

struct duda_parsed_form *duda_form_parsed(struct duda_ctx *d)
{
    return d->request ? mk_request_attached(d->request, &key) : NULL;
}

int duda_form_load(struct duda_ctx *d, const struct duda_form_limits *fields,
                   const struct duda_multipart_limits *files)
{
    struct duda_parsed_form *form = duda_form_parsed(d);
    if (form || !d->request)
        return form ? form->result : 415;
    form = mk_request_alloc(d->request, sizeof *form);
    if (!form)
        return -ENOMEM;
    *form = (struct duda_parsed_form){.result = 0};
    if (mk_request_attach(d->request, &key, form, NULL))
        return -ENOMEM;
    form->result = load_form(d, form, fields, files);
    if (form->result)
        form->fields.n = form->n_files = 0;
    return form->result;
}

/* A request without a form, such as a GET, simply has no fields. */
bool duda_form_load_implicitly(struct duda_ctx *d)
{
    int e = duda_form_load(d, NULL, NULL);
    if (e && e != 415)
        d->form_error = e; /* an absent value would mean "not filled in": see result.c */
    return e;
}

const struct duda_form_data *duda_form_all(struct duda_ctx *d)
{
    static const struct duda_form_data none;
    return duda_form_load_implicitly(d) ? &none : &duda_form_parsed(d)->fields;
}

mk_str duda_form(struct duda_ctx *d, const char *name)
{
    return duda_form_data_get(duda_form_all(d), name);
}

int duda_bind_form(struct duda_ctx *d, const struct duda_schema *schema, void *out,
                   struct duda_validation_errors *errors)
{
    const struct duda_allocator memory = duda_allocator_of(d);
    errors->n = 0;
    int e = duda_form_load(d, NULL, NULL);
    return e ? e : duda_form_data_bind(&duda_form_parsed(d)->fields, schema, &memory, out, errors);
}

/* The callbacks may wait. */
static int feed_request_body(struct duda_ctx *d, struct duda_multipart *parts)
{
    struct duda_scratch_buf piece;
    ssize_t n = 0;
    int e = duda_scratch_buf_begin(d, &piece, PIECE);
    if (!e && !mk_buf_reserve(&piece.buf, PIECE))
        e = -ENOMEM;
    while (!e && (n = duda_read(d, piece.buf.p, PIECE)) > 0)
        e = duda_multipart_feed(parts, mk_str_of(piece.buf.p, (size_t)n));
    duda_wait_end(&piece.wait);
    return e ? e : n < 0 ? (int)n : duda_multipart_end(parts);
}

int duda_multipart_read(struct duda_ctx *d, const struct duda_multipart_limits *limits,
                        const struct duda_multipart_ops *ops, void *ctx)
{
    mk_str type = duda_header_view(d, "Content-Type"), boundary;
    int coded = duda_form_check_encoding(d);
    if (coded)
        return coded;
    if (!is_media_type(type, MK_STR("multipart/form-data")))
        return duda_reason(d, 415, "the content is not multipart/form-data");
    if (!duda_multipart_boundary(type, &boundary))
        return duda_reason(d, -EBADMSG, "multipart/form-data without a boundary");
    struct duda_multipart *parts = duda_multipart_new(boundary, limits, ops, ctx);
    int e = parts ? feed_request_body(d, parts) : -ENOMEM;
    if (parts)
        set_multipart_reason(d, e, parts);
    duda_multipart_free(parts);
    return e;
}
