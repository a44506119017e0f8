/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a request, received once and attached to the request. */
#include <duda.h>
#include <errno.h>

#include "service/extras.h"
#include "service/forms.h"
#include "service/memory.h"
#include "service/request_body.h"
#include "service/suspend.h"

enum { PIECE = 4096 };

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

static struct mk_allocator request_allocator(struct duda_ctx *d)
{
    return (struct mk_allocator){alloc_from_request, d};
}

/* ---- Body ---- */

int duda_form_spool_body(struct duda_ctx *d, uint64_t max, struct mk_spool **out)
{
    int e;
    while ((e = mk_spool_request(d->request, max, out)) == -EAGAIN) {
        e = duda_suspend_until(d, DUDA_SUSPEND_FOR_INPUT);
        if (e)
            return e;
    }
    if (e == -EMSGSIZE)
        duda_log(d, MK_LOG_DEBUG,
                 "413: the body exceeds the body limit, or `.size` of the struct mk_multipart_limits");
    return e == -ECONNRESET ? duda_suspend_cancel(d, -ECANCELED) : e < 0 ? (int)mk_spool_status(e) : e;
}

/* Reports which part violates which rule. */
static void set_multipart_reason(struct duda_ctx *d, int e, const struct mk_multipart *parts)
{
    size_t n;
    const char *error = e ? mk_multipart_error(parts, &n) : NULL;
    if (error)
        (void)duda_reason(d, e, "multipart/form-data, part %zu: %s", n, error);
}

static int load_multipart_form(struct duda_ctx *d, struct duda_parsed_form *form, mk_str boundary,
                               const struct mk_form_limits *fields, const struct mk_multipart_limits *files)
{
    const struct mk_allocator memory = request_allocator(d);
    mk_str error;
    int e = duda_form_spool_body(d, mk_multipart_limits_of(files).size, &form->content);
    if (e)
        return e;
    e = mk_form_parse_spool(form->content, boundary, &memory, fields, files, &form->fields, &error);
    return error.p ? duda_reason(d, e, "%s", error.p) : e;
}

static int load_urlencoded_form(struct duda_ctx *d, struct duda_parsed_form *form,
                                const struct mk_form_limits *given)
{
    const struct mk_form_limits limits = mk_form_limits_of(given);
    const struct mk_allocator memory = request_allocator(d);
    mk_str text;
    size_t mark = duda_arena_mark(d);
    int e = duda_read_all(d, limits.size, &text);
    if (!e)
        e = mk_form_parse(text, &memory, &limits, &form->fields);
    duda_arena_rewind(d, mark);
    if (e == -EBADMSG)
        return duda_reason(d, e, "the form has a %% without two hexadecimal digits");
    return e == -EMSGSIZE
               ? duda_reason(d, e, "the form is too long, has too many fields, or a field is too long")
               : e;
}

static bool is_media_type(mk_str type, mk_str expected)
{
    size_t end = mk_str_find(type, ';');
    return mk_str_eq_nocase(mk_str_trim(mk_str_first(type, end == MK_STR_NONE ? type.len : end)), expected);
}

static int load_form(struct duda_ctx *d, struct duda_parsed_form *form, const struct mk_form_limits *fields,
                     const struct mk_multipart_limits *files)
{
    mk_str type = duda_header_view(d, "Content-Type"), boundary;
    int coded = duda_request_body_check_coding(d);
    if (coded)
        return coded;
    if (is_media_type(type, MK_STR("application/x-www-form-urlencoded")))
        return load_urlencoded_form(d, form, fields);
    if (!is_media_type(type, MK_STR("multipart/form-data")))
        return duda_reason(d, 415,
                           "the content is not a form: its Content-Type is neither multipart/form-data nor "
                           "application/x-www-form-urlencoded");
    return mk_multipart_boundary(type, &boundary)
               ? load_multipart_form(d, form, boundary, fields, files)
               : duda_reason(d, -EBADMSG, "multipart/form-data without a boundary");
}

/* ---- Called by handlers ---- */

struct duda_parsed_form *duda_form_parsed(struct duda_ctx *d)
{
    return d->request ? mk_request_attached(d->request, &key) : NULL;
}

int duda_form_load(struct duda_ctx *d, const struct mk_form_limits *fields,
                   const struct mk_multipart_limits *files)
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
        form->fields.n = form->fields.n_uploads = 0;
    return form->result;
}

/* Returns true on failure. Also returns true for a request without a form, such as a GET, but records no
 * error then: such a request simply has no fields. */
bool duda_form_load_implicitly(struct duda_ctx *d)
{
    int e = duda_form_load(d, NULL, NULL);
    if (e && e != 415)
        d->form_error = e; /* an absent value would mean "not filled in": see result.c */
    return e;
}

const struct mk_form *duda_form_all(struct duda_ctx *d)
{
    static const struct mk_form none;
    return duda_form_load_implicitly(d) ? &none : &duda_form_parsed(d)->fields;
}

mk_str duda_form(struct duda_ctx *d, const char *name)
{
    return mk_form_get(duda_form_all(d), name);
}

/* Keeps a copy of the errors for templates. The copy is on the heap, because duda_arena_rewind() may free the
 * memory of the handler. */
static int keep_form_errors(struct duda_ctx *d, const struct duda_validation_errors *errors)
{
    struct duda_extras *extras = errors->n || d->extras ? duda_extras_get(d) : NULL;
    if (errors->n && extras && !extras->form_errors)
        extras->form_errors = mk_mem_alloc(sizeof *extras->form_errors);
    if (errors->n && (!extras || !extras->form_errors))
        return -ENOMEM;
    if (extras && extras->form_errors)
        *extras->form_errors = *errors;
    return 0;
}

/* Returns 0, -EINVAL if the form is invalid, or another error, which the handler may return unchanged. */
static int bind_form(struct duda_ctx *d, const struct duda_schema *schema, void *out, size_t size,
                     struct duda_validation_errors *errors)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    errors->n = 0;
    int e = duda_schema_check_size(d, schema, size);
    e = e ? e : duda_form_load(d, NULL, NULL);
    e = e ? e : duda_form_data_bind(&duda_form_parsed(d)->fields, schema, &memory, out, errors);
    if (e && e != -EINVAL)
        return e;
    int kept = keep_form_errors(d, errors);
    return kept ? kept : e;
}

int duda_bind_form_checked(struct duda_ctx *d, const struct duda_schema *schema, void *out, size_t size,
                           struct duda_validation_errors *errors)
{
    struct duda_validation_errors *own = errors ? errors : duda_alloc(d, sizeof *own);
    int e = own ? bind_form(d, schema, out, size, own) : -ENOMEM;
    return e == -EINVAL && !errors ? duda_error_invalid(d, 422, own) : e;
}

/* Parses the request body as it arrives. The callbacks of `parts` may wait. */
static int feed_request_body(struct duda_ctx *d, struct mk_multipart *parts)
{
    struct duda_scratch_buf piece;
    ssize_t n = 0;
    int e = duda_scratch_buf_begin(d, &piece, PIECE);
    if (!e && !mk_buf_reserve(&piece.buf, PIECE))
        e = -ENOMEM;
    while (!e && (n = duda_read(d, piece.buf.p, PIECE)) > 0)
        e = mk_multipart_feed(parts, mk_str_of(piece.buf.p, (size_t)n));
    duda_wait_end(&piece.wait);
    return e ? e : n < 0 ? (int)n : mk_multipart_end(parts);
}

int duda_multipart_read(struct duda_ctx *d, const struct mk_multipart_limits *limits,
                        const struct mk_multipart_ops *ops, void *ctx)
{
    mk_str type = duda_header_view(d, "Content-Type"), boundary;
    int coded = duda_request_body_check_coding(d);
    if (coded)
        return coded;
    if (!is_media_type(type, MK_STR("multipart/form-data")))
        return duda_reason(d, 415, "the content is not multipart/form-data");
    if (!mk_multipart_boundary(type, &boundary))
        return duda_reason(d, -EBADMSG, "multipart/form-data without a boundary");
    struct mk_multipart *parts = mk_multipart_new(boundary, limits, ops, ctx);
    int e = parts ? feed_request_body(d, parts) : -ENOMEM;
    if (parts)
        set_multipart_reason(d, e, parts);
    mk_multipart_free(parts);
    return e;
}
