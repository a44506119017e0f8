/* SPDX-License-Identifier: Apache-2.0 */
/* JSON in a response body. */
#include <duda/body.h>
#include <duda/http.h>
#include <duda/memory.h>
#include <duda/mime.h>
#include <errno.h>

enum { WHY_MAX = 512, TYPE_SHOWN = 80 };

static int set_response_error(struct duda_ctx *d, struct duda_http_response *r, int e, mk_str message)
{
    r->error = duda_sprintf(d, "[HTTP_CLIENT] %.*s: %.*s", MK_STR_ARG(r->server), MK_STR_ARG(message));
    return e;
}

static int check_response_is_json(struct duda_ctx *d, struct duda_http_response *r)
{
    struct duda_mime mime;
    mk_str type = duda_http_header(r, "Content-Type");
    if (duda_mime_read(type, &mime) &&
        (duda_mime_is(&mime, MK_STR("application/json")) || duda_mime_is(&mime, MK_STR("*/*+json"))))
        return 0;
    return set_response_error(d, r, -EBADMSG,
                              type.p ? duda_sprintf(d, "its content is not JSON, but %.*s",
                                                    MK_STR_ARG(mk_str_first(type, TYPE_SHOWN)))
                                     : MK_STR("its content is not JSON: it has no Content-Type"));
}

/* Reports the first error with its location, and the number of further errors. */
static int report_json_error(struct duda_ctx *d, struct duda_http_response *r, int e,
                             const struct duda_validation_errors *errors)
{
    char buf[WHY_MAX];
    struct mk_buf message = mk_buf_fixed(buf, sizeof buf);
    if (!e)
        return 0;
    if (e == -ENOMEM || !errors->n)
        return set_response_error(d, r, e, mk_str_from_c(strerror(-e)));
    mk_buf_add(&message, MK_STR("its JSON, "));
    duda_validation_error_write(&message, &errors->items[0]);
    if (errors->n > 1)
        mk_buf_addf(&message, "; and %zu more", errors->n - 1);
    return set_response_error(d, r, e, mk_buf_str(&message));
}

static int check_struct_size(struct duda_ctx *d, struct duda_http_response *r,
                             const struct duda_schema *schema, size_t size)
{
    int e = duda_schema_check_size(d, schema, size);
    return e ? set_response_error(d, r, e, MK_STR("the size of the struct is not that of the schema")) : 0;
}

int duda_http_json_checked(struct duda_ctx *d, struct duda_http_response *response,
                           const struct duda_schema *schema, void *out, size_t size,
                           const struct mk_json_limits *limits)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors = {.n = 0};
    int e = check_struct_size(d, response, schema, size);
    e = e ? e : check_response_is_json(d, response);
    return e ? e
             : report_json_error(d, response,
                                 duda_json_read(response->body, schema, &memory, limits, out, &errors),
                                 &errors);
}

int duda_http_json_list_checked(struct duda_ctx *d, struct duda_http_response *response,
                                const struct duda_schema *schema, void *list, size_t size, size_t *n,
                                const struct mk_json_limits *limits)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors = {.n = 0};
    int e = check_struct_size(d, response, schema, size);
    e = e ? e : check_response_is_json(d, response);
    return e ? e
             : report_json_error(
                   d, response,
                   duda_json_read_list(response->body, schema, &memory, limits, list, n, &errors), &errors);
}

int duda_http_json_value(struct duda_ctx *d, struct duda_http_response *response, struct duda_value *out,
                         const struct mk_json_limits *limits)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors = {.n = 0};
    int e = check_response_is_json(d, response);
    return e ? e
             : report_json_error(
                   d, response, duda_json_read_value(response->body, &memory, limits, out, &errors), &errors);
}
