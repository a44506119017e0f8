/* SPDX-License-Identifier: Apache-2.0 */
/* Sends trailers: the response body has a line for each request trailer, and the query names the response
 * trailers: known=NAME:VALUE is added before the head is sent, late=NAME:VALUE after the body, and
 * refused=NAME:VALUE must be rejected. "length" makes the length of the body known. */
#include <errno.h>
#include <monkey/plugin.h>
#include <stdlib.h>

struct answer {
    struct mk_request *request;
    struct mk_response *response;
    struct mk_buf text;
    bool read;
};

static void write_trailers(struct answer *a)
{
    mk_str name, value;
    for (size_t i = 0; mk_request_trailer_at(a->request, i, &name, &value); i++) {
        mk_buf_addf(&a->text, "%.*s=%.*s\n", MK_STR_ARG(name), MK_STR_ARG(value));
        if (!mk_request_trailer(a->request, name).p)
            abort();
    }
}

static int read_all(struct answer *a)
{
    char buffer[700];
    mk_str name, value;
    ssize_t n;
    do {
        if (mk_request_trailer_at(a->request, 0, &name, &value))
            abort(); /* the request body has not ended */
        n = mk_request_read(a->request, buffer, sizeof buffer);
    } while (n > 0);
    return (int)n;
}

static void add(struct answer *a, const char *when)
{
    mk_str rest = mk_request_query(a->request);
    while (rest.p) {
        mk_str value = mk_str_cut(&rest, '&'), word = mk_str_cut(&value, '='), name = mk_str_cut(&value, ':');
        if (!mk_str_eq(word, mk_str_from_c(when)))
            continue;
        int e = mk_response_add_trailer(a->response, name, value);
        if (e != (mk_str_eq(word, MK_STR("refused")) ? -EINVAL : 0))
            abort();
    }
}

static ssize_t pull(void *ctx, char *buffer, size_t cap)
{
    struct answer *a = ctx;
    size_t n = a->text.len < cap ? a->text.len : cap;
    if (n == 0) {
        add(a, "late");
        return 0;
    }
    memcpy(buffer, a->text.p, n);
    mk_buf_consume(&a->text, n);
    return (ssize_t)n;
}

static void on_end(void *ctx)
{
    mk_buf_free(&((struct answer *)ctx)->text);
}

static const struct mk_body_source_ops ops = {.read = pull};

static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
{
    struct answer *a = mk_request_data(request);
    (void)data;
    if (!a) {
        a = mk_request_alloc(request, sizeof *a);
        if (!a)
            return MK_ERROR;
        *a = (struct answer){.request = request, .response = response, .text = mk_buf_growing(1 << 20)};
        if (mk_request_add_cleanup(request, on_end, a))
            return MK_ERROR;
        mk_request_set_data(request, a);
    }
    int e = read_all(a);
    if (e == -EAGAIN)
        return MK_WAIT;
    if (e) {
        mk_response_set_status(response, 400);
        return MK_ERROR;
    }
    write_trailers(a);
    add(a, "known");
    add(a, "refused");
    mk_str query = mk_request_query(request);
    bool known = mk_str_starts(query, MK_STR("length"));
    return mk_response_set_body_source(response, &ops, a, known ? (int64_t)a->text.len : MK_LENGTH_UNKNOWN)
               ? MK_ERROR
               : MK_DONE;
}

static const struct mk_handler handler = {.name = "trailers", .handle = handle};

MK_PLUGIN(trailers) = {
    MK_PLUGIN_HEAD,
    .name = "trailers",
    .handlers = (const struct mk_handler *const[]){&handler, NULL},
};
