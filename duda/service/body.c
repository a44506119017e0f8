/* SPDX-License-Identifier: Apache-2.0 */
/* JSON request and response bodies, and problem details. */
#include <duda.h>
#include <errno.h>
#include <monkey/json_value.h>
#include <monkey/mem.h>
#include <stdio.h>

#include "service/extras.h"
#include "service/request_body.h"
#include "service/response.h"
#include "service/route_table.h"
#include "service/suspend.h"

enum { SIZE_DEFAULT = 1 << 20, PROBLEM_MAX = 32 << 10, DETAIL_MAX = 1024 };

/* ---- Responses ---- */

int duda_send_json(struct duda_ctx *d, struct duda_value value)
{
    int e = duda_response_begin_append(d);
    if (!e)
        e = mk_response_add_default(d->response, MK_STR("Content-Type"), MK_STR("application/json"));
    if (e)
        return e;
    size_t before = d->out.len;
    duda_json_write(&d->out, &value);
    if (d->out.failed) /* the incomplete text is invalid JSON */
        d->out.len = before;
    return duda_response_end_append(d);
}

int duda_send_json_struct(struct duda_ctx *d, const struct duda_schema *schema, const void *at)
{
    return duda_send_json(d, duda_value_struct(schema, at));
}

/* ---- Problems ---- */

static void begin_problem_json(struct mk_json_writer *w, unsigned status, mk_str detail)
{
    mk_str title = mk_status_phrase(status);
    mk_json_begin_object(w);
    if (title.p)
        mk_json_string(mk_json_key(w, "title"), title);
    mk_json_uint(mk_json_key(w, "status"), status);
    mk_json_string(mk_json_key(w, "detail"), detail);
}

/* Replaces the response written so far. Aborts a response that has already started. */
static int send_problem_json(struct duda_ctx *d, unsigned status, const struct mk_buf *text)
{
    if (text->failed)
        return (int)status;
    mk_buf_clear(&d->out);
    int e = duda_content_type(d, MK_STR("application/problem+json"));
    if (!e)
        e = duda_status(d, status);
    if (!e)
        e = duda_write(d, mk_buf_str(text));
    return e ? e : DUDA_HANDLED;
}

static void write_bound(struct mk_json_writer *w, const char *name, struct duda_bound bound)
{
    if (bound.is_set)
        mk_json_double(mk_json_key(w, name), bound.value);
}

static void write_validation_error(struct mk_json_writer *w, const struct duda_validation_error *error)
{
    mk_json_begin_object(w);
    mk_json_string(mk_json_key(w, "detail"), error->message);
    mk_json_string(mk_json_key(w, "pointer"), error->pointer);
    mk_json_cstr(mk_json_key(w, "code"), error->code);
    write_bound(w, "minimum", error->at_least);
    write_bound(w, "maximum", error->at_most);
    if (error->expected)
        mk_json_cstr(mk_json_key(w, "expected"), error->expected);
    if (error->line) {
        mk_json_uint(mk_json_key(w, "line"), error->line);
        mk_json_uint(mk_json_key(w, "column"), error->column);
    }
    mk_json_end_object(w);
}

/* Writes problem details; `errors` may be NULL. */
static int send_problem(struct duda_ctx *d, unsigned status, mk_str detail,
                        const struct duda_validation_errors *errors)
{
    struct duda_scratch_buf scratch;
    struct mk_json_writer w = mk_json_writer_to(&scratch.buf);
    if (duda_head_is_final(d))
        return (int)status;
    int e = duda_scratch_buf_begin(d, &scratch, PROBLEM_MAX);
    if (e)
        return e;
    begin_problem_json(&w, status, detail);
    if (errors) {
        mk_json_begin_array(mk_json_key(&w, "errors"));
        for (size_t i = 0; i < errors->n; i++)
            write_validation_error(&w, &errors->items[i]);
        mk_json_end_array(&w);
    }
    mk_json_end_object(&w);
    e = send_problem_json(d, status, &scratch.buf);
    duda_wait_end(&scratch.wait);
    return e;
}

static mk_str format_detail(char buf[DETAIL_MAX], const char *fmt, va_list args)
{
    struct mk_buf detail = mk_buf_fixed(buf, DETAIL_MAX);
    mk_buf_addv(&detail, fmt, args);
    return mk_buf_str(&detail);
}

int duda_problem(struct duda_ctx *d, unsigned status, const char *fmt, ...)
{
    char buf[DETAIL_MAX];
    va_list args;
    va_start(args, fmt);
    mk_str detail = format_detail(buf, fmt, args);
    va_end(args);
    return send_problem(d, status, detail, NULL);
}

static mk_str summarize_validation_errors(char buf[DETAIL_MAX], const struct duda_validation_errors *errors)
{
    struct mk_buf detail = mk_buf_fixed(buf, DETAIL_MAX);
    if (errors->n)
        duda_validation_error_write(&detail, &errors->items[0]);
    if (errors->n > 1)
        mk_buf_addf(&detail, "; and %zu more", errors->n - 1);
    return mk_buf_str(&detail);
}

int duda_problem_errors(struct duda_ctx *d, unsigned status, const struct duda_validation_errors *errors)
{
    char buf[DETAIL_MAX];
    return send_problem(d, status, summarize_validation_errors(buf, errors), errors);
}

/* ---- Errors that error handlers respond to ---- */

/* Sends problem details, or records the error for the error handlers. Returns the result for the handler.
 * `errors` may be NULL. */
static int report_client_error(struct duda_ctx *d, unsigned status, mk_str detail,
                               const struct duda_validation_errors *errors)
{
    struct duda_extras *extras = d->request ? duda_extras_get(d) : NULL;
    if (duda_head_is_final(d) || !extras)
        return (int)status;
    if (!d->route_entry->errors && !duda_client_prefers_html(d))
        return send_problem(d, status, detail, errors);
    if (!extras->client_error)
        extras->client_error = mk_mem_alloc(sizeof *extras->client_error);
    if (!extras->client_error)
        return (int)status;
    struct duda_client_error *error = extras->client_error;
    error->status = status;
    snprintf(error->detail, sizeof error->detail, "%.*s", MK_STR_ARG(detail));
    error->validation.n = 0;
    if (errors)
        error->validation = *errors;
    return duda_reason(d, (int)status, "%s", error->detail);
}

int duda_error(struct duda_ctx *d, unsigned status, const char *fmt, ...)
{
    char buf[DETAIL_MAX];
    va_list args;
    va_start(args, fmt);
    mk_str detail = format_detail(buf, fmt, args);
    va_end(args);
    return report_client_error(d, status, detail, NULL);
}

int duda_error_invalid(struct duda_ctx *d, unsigned status, const struct duda_validation_errors *errors)
{
    char buf[DETAIL_MAX];
    return report_client_error(d, status, summarize_validation_errors(buf, errors), errors);
}

/* ---- Requests ---- */

static int receive_json_body(struct duda_ctx *d, const struct mk_json_limits *limits, mk_str *text)
{
    size_t max = limits && limits->size ? limits->size : SIZE_DEFAULT;
    if (!d->request || !mk_request_has_json(d->request))
        return duda_error(d, 415, "the content must be JSON: Content-Type: application/json");
    if (duda_request_body_check_coding(d))
        return duda_error(d, 415, "the content must not be encoded: omit Content-Encoding");
    int e = duda_read_all(d, max, text);
    return e == -EMSGSIZE ? duda_error(d, 413, "the content must have at most %zu bytes", max) : e;
}

static int respond_json_errors(struct duda_ctx *d, int e, const struct duda_validation_errors *errors)
{
    switch (e) {
    case -EBADMSG:
        return duda_error_invalid(d, 400, errors);
    case -EMSGSIZE:
        return duda_error_invalid(d, 413, errors);
    case -EINVAL:
        return duda_error_invalid(d, 422, errors);
    default:
        return e;
    }
}

int duda_schema_check_size(struct duda_ctx *d, const struct duda_schema *schema, size_t size)
{
    if (size == schema->size)
        return 0;
    return duda_reason(d, -EFAULT, "the schema of `%s` describes %zu bytes, but the struct has %zu bytes",
                       schema->name ? schema->name : "", schema->size, size);
}

int duda_bind_merge_patch_checked(struct duda_ctx *d, const struct duda_schema *schema, void *out,
                                  size_t size, const struct mk_json_limits *limits)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors;
    mk_str text;
    int e = duda_schema_check_size(d, schema, size);
    e = e ? e : receive_json_body(d, limits, &text);
    return e ? e
             : respond_json_errors(d, duda_json_merge(text, schema, &memory, limits, out, &errors), &errors);
}

int duda_bind_json_checked(struct duda_ctx *d, const struct duda_schema *schema, void *out, size_t size,
                           const struct mk_json_limits *limits)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors;
    mk_str text;
    int e = duda_schema_check_size(d, schema, size);
    e = e ? e : receive_json_body(d, limits, &text);
    return e ? e
             : respond_json_errors(d, duda_json_read(text, schema, &memory, limits, out, &errors), &errors);
}

int duda_bind_json_list_checked(struct duda_ctx *d, const struct duda_schema *schema, void *list, size_t size,
                                size_t *n, const struct mk_json_limits *limits)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors;
    mk_str text;
    int e = duda_schema_check_size(d, schema, size);
    e = e ? e : receive_json_body(d, limits, &text);
    return e ? e
             : respond_json_errors(d, duda_json_read_list(text, schema, &memory, limits, list, n, &errors),
                                   &errors);
}

int duda_read_json(struct duda_ctx *d, struct duda_value *out, const struct mk_json_limits *limits)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors;
    mk_str text;
    int e = receive_json_body(d, limits, &text);
    return e ? e : respond_json_errors(d, duda_json_read_value(text, &memory, limits, out, &errors), &errors);
}

int duda_bind_query_checked(struct duda_ctx *d, const struct duda_schema *schema, void *out, size_t size)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct mk_form fields;
    struct duda_validation_errors errors;
    int e = duda_schema_check_size(d, schema, size);
    if (e)
        return e;
    e = mk_form_parse(d->request ? mk_request_query(d->request) : MK_STR_NULL, &memory, NULL, &fields);
    if (e == -EBADMSG)
        return duda_error(d, 400, "the query has a %% without two hexadecimal digits");
    if (e == -EMSGSIZE)
        return duda_error(d, 413, "the query has too many parameters, or a parameter is too long");
    if (!e)
        e = duda_form_data_bind(&fields, schema, &memory, out, &errors);
    return e == -EINVAL ? duda_error_invalid(d, 400, &errors) : e;
}
