/* SPDX-License-Identifier: Apache-2.0 */
/* Receives the forms of requests. */
#include <errno.h>
#include <monkey/form.h>
#include <monkey/mem.h>
#include <monkey/request.h>
#include <monkey/spool.h>
#include <monkey/text.h>

enum { PIECE = 4096 };

/* Larger limits, such as SIZE_MAX for no limit, would overflow. */
static const size_t text_max = PTRDIFF_MAX - 2 * PIECE;

/* A form that is being received, or was received. */
struct request_form {
    struct mk_form form;
    int result; /* -EAGAIN: more of the body is to come */
    mk_str error_text;
    mk_str boundary;            /* absent: the form is urlencoded */
    struct mk_buf text;         /* the received part of a urlencoded form */
    struct mk_multipart *parts; /* parser of mk_request_multipart(); NULL: none */
    struct mk_spool *spool;     /* NULL: nothing was spooled */
};

static const char key; /* key of the form attached to the request */

static void free_request_form(void *data)
{
    struct request_form *f = data;
    mk_buf_free(&f->text);
    mk_multipart_free(f->parts);
}

static void *alloc_from_request(void *request, size_t size)
{
    return mk_request_alloc(request, size);
}

struct mk_allocator mk_request_allocator(struct mk_request *r)
{
    return (struct mk_allocator){alloc_from_request, r};
}

mk_str mk_request_content_coding(const struct mk_request *r)
{
    mk_str list = mk_request_header(r, MK_STR("Content-Encoding")), coding;
    while (list.p && mk_header_list_next(&list, &coding))
        if (!mk_str_eq_nocase(coding, MK_STR("identity")))
            return coding;
    return MK_STR_NULL;
}

/* ---- The kind of form ---- */

static int fail_with_text(struct request_form *f, int error, const char *text)
{
    f->error_text = mk_str_from_c(text);
    return error;
}

static bool is_media_type(mk_str type, mk_str expected)
{
    size_t end = mk_str_find(type, ';');
    return mk_str_eq_nocase(mk_str_trim(mk_str_first(type, end == MK_STR_NONE ? type.len : end)), expected);
}

static int check_multipart_type(const struct mk_request *r, struct request_form *f)
{
    mk_str type = mk_request_header(r, MK_STR("Content-Type"));
    if (mk_request_content_coding(r).p)
        return fail_with_text(f, -EMEDIUMTYPE, "the content has a Content-Encoding");
    if (!is_media_type(type, MK_STR("multipart/form-data")))
        return fail_with_text(f, -EMEDIUMTYPE, "the content is not multipart/form-data");
    return mk_multipart_boundary(type, &f->boundary)
               ? 0
               : fail_with_text(f, -EBADMSG, "multipart/form-data without a boundary");
}

static int check_form_type(const struct mk_request *r, struct request_form *f)
{
    mk_str type = mk_request_header(r, MK_STR("Content-Type"));
    if (!is_media_type(type, MK_STR("application/x-www-form-urlencoded")) &&
        !is_media_type(type, MK_STR("multipart/form-data")))
        return fail_with_text(
            f, -EMEDIUMTYPE,
            "the content is not a form: its Content-Type is neither multipart/form-data nor "
            "application/x-www-form-urlencoded");
    if (is_media_type(type, MK_STR("multipart/form-data")))
        return check_multipart_type(r, f);
    return mk_request_content_coding(r).p
               ? fail_with_text(f, -EMEDIUMTYPE, "the content has a Content-Encoding")
               : 0;
}

/* Returns the form attached to the request; at the first call, creates it with the result of check(). NULL:
 * out of memory. */
static struct request_form *begin_request_form(struct mk_request *r, int (*check)(const struct mk_request *r,
                                                                                  struct request_form *f))
{
    struct request_form *f = mk_request_attached(r, &key);
    if (f)
        return f;
    f = mk_request_alloc(r, sizeof *f);
    if (!f)
        return NULL;
    *f = (struct request_form){.text = mk_buf_growing(0)};
    int e = check(r, f);
    f->result = e ? e : -EAGAIN;
    return mk_request_attach(r, &key, f, free_request_form) ? NULL : f;
}

/* ---- Receiving ---- */

static int read_text(struct mk_request *r, struct request_form *f, size_t max)
{
    ssize_t n;
    do {
        if (!mk_buf_reserve(&f->text, PIECE))
            return -ENOMEM;
        n = mk_request_read(r, f->text.p + f->text.len, f->text.cap - f->text.len);
        f->text.len += n > 0 ? (size_t)n : 0;
    } while (n > 0 && f->text.len <= max);
    return f->text.len > max ? -EMSGSIZE : (int)n;
}

static int receive_urlencoded(struct mk_request *r, struct request_form *f,
                              const struct mk_form_limits *given)
{
    const struct mk_form_limits limits = mk_form_limits_of(given);
    const struct mk_allocator memory = mk_request_allocator(r);
    size_t max = limits.size > text_max ? text_max : limits.size;
    if (!f->text.p)
        f->text = mk_buf_growing(max + 2 * PIECE);
    int e = mk_request_length(r) > (int64_t)max ? -EMSGSIZE : read_text(r, f, max);
    if (!e)
        e = mk_form_parse(mk_buf_str(&f->text), &memory, &limits, &f->form);
    if (e != -EAGAIN)
        mk_buf_free(&f->text);
    if (e == -EBADMSG)
        return fail_with_text(f, e, "the form has a % without two hexadecimal digits");
    return e == -EMSGSIZE
               ? fail_with_text(f, e, "the form is too long, has too many fields, or a field is too long")
               : e;
}

static int receive_multipart(struct mk_request *r, struct request_form *f,
                             const struct mk_form_limits *fields, const struct mk_multipart_limits *files)
{
    const struct mk_allocator memory = mk_request_allocator(r);
    int e = mk_spool_request(r, mk_multipart_limits_of(files).size, &f->spool);
    if (e == -EMSGSIZE)
        return fail_with_text(f, -EMSGSIZE, "the content is too long");
    return e ? e
             : mk_form_parse_spool(f->spool, f->boundary, &memory, fields, files, &f->form, &f->error_text);
}

int mk_request_form(struct mk_request *r, const struct mk_form_limits *fields,
                    const struct mk_multipart_limits *files, const struct mk_form **form)
{
    struct request_form *f = begin_request_form(r, check_form_type);
    *form = NULL;
    if (!f)
        return -ENOMEM;
    if (f->result == -EAGAIN)
        f->result = f->boundary.p ? receive_multipart(r, f, fields, files) : receive_urlencoded(r, f, fields);
    if (!f->result)
        *form = &f->form;
    return f->result;
}

static int feed_request(struct mk_request *r, struct mk_multipart *parts)
{
    char piece[PIECE];
    ssize_t n;
    int e = 0;
    while (!e && (n = mk_request_read(r, piece, sizeof piece)) != 0)
        e = n < 0 ? (int)n : mk_multipart_feed(parts, mk_str_of(piece, (size_t)n));
    if (e == -EAGAIN && n > 0)
        return -EINVAL; /* a callback failed with -EAGAIN, which is reserved for an incomplete body */
    return e ? e : mk_multipart_end(parts);
}

/* Returns a text that says which part violates which rule; absent: no rule was violated. */
static mk_str describe_parser_error(struct mk_request *r, const struct mk_multipart *parts)
{
    const struct mk_allocator memory = mk_request_allocator(r);
    char room[256];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    size_t n;
    const char *rule = mk_multipart_error(parts, &n);
    if (rule)
        mk_buf_addf(&text, "multipart/form-data, part %zu: %s%c", n, rule, 0);
    mk_str copy = text.len ? mk_allocator_copy(&memory, mk_buf_str(&text)) : MK_STR_NULL;
    return mk_str_first(copy, copy.len ? copy.len - 1 : 0);
}

int mk_request_multipart(struct mk_request *r, const struct mk_multipart_limits *limits,
                         const struct mk_multipart_ops *ops, void *ctx)
{
    struct request_form *f = begin_request_form(r, check_multipart_type);
    if (!f)
        return -ENOMEM;
    if (f->result != -EAGAIN)
        return f->result;
    if (!f->parts)
        f->parts = mk_multipart_new(f->boundary, limits, ops, ctx);
    f->result = f->parts ? feed_request(r, f->parts) : -ENOMEM;
    if (f->result && f->result != -EAGAIN && f->parts)
        f->error_text = describe_parser_error(r, f->parts);
    return f->result;
}

/* ---- Results ---- */

mk_str mk_request_form_error(const struct mk_request *r)
{
    const struct request_form *f = mk_request_attached(r, &key);
    return f ? f->error_text : MK_STR_NULL;
}

unsigned mk_form_status(int error)
{
    return error == -EMEDIUMTYPE ? 415 : mk_spool_status(error);
}

struct mk_spool *mk_request_form_spool(const struct mk_request *r)
{
    const struct request_form *f = mk_request_attached(r, &key);
    return f && !f->result ? f->spool : NULL;
}

ssize_t mk_upload_read(const struct mk_request *r, const struct mk_upload *u, char *buf, size_t cap,
                       uint64_t offset)
{
    const struct mk_spool *spool = mk_request_form_spool(r);
    if (!spool)
        return -EINVAL;
    if (offset >= u->size)
        return 0;
    uint64_t left = u->size - offset;
    return mk_spool_read(spool, buf, left < cap ? (size_t)left : cap, u->offset + offset);
}

int mk_request_query_form(struct mk_request *r, const struct mk_form_limits *limits, struct mk_form *form)
{
    const struct mk_allocator memory = mk_request_allocator(r);
    return mk_form_parse(mk_request_query(r), &memory, limits, form);
}
