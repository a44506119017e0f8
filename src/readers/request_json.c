/* SPDX-License-Identifier: Apache-2.0 */
/* Receives JSON documents. */
#include <errno.h>
#include <monkey/buf.h>
#include <monkey/form.h>
#include <monkey/json_value.h>
#include <monkey/request.h>

enum { PIECE = 4096, SIZE_DEFAULT = 1 << 20 };

/* Larger limits, such as SIZE_MAX for no limit, would overflow. */
static const size_t text_max = PTRDIFF_MAX - 2 * PIECE;

/* A document that is being received, or was received. */
struct request_json {
    struct mk_json_value value;
    struct mk_json_error error;
    int result; /* -EAGAIN: more of the body is to come */
    struct mk_buf text;
};

static const char key; /* key of the document attached to the request */

static void free_request_json(void *data)
{
    struct request_json *j = data;
    mk_buf_free(&j->text);
}

/* Is the type "application/json", or one with the suffix "+json", with any parameters? */
static bool is_json_type(mk_str type)
{
    size_t end = mk_str_find(type, ';');
    type = mk_str_trim(mk_str_first(type, end == MK_STR_NONE ? type.len : end));
    if (mk_str_eq_nocase(type, MK_STR("application/json")))
        return true;
    return type.len > 5 && mk_str_eq_nocase(mk_str_skip(type, type.len - 5), MK_STR("+json"));
}

bool mk_request_has_json(const struct mk_request *r)
{
    return is_json_type(mk_request_header(r, MK_STR("Content-Type")));
}

static int fail_with_text(struct request_json *j, int e, const char *text)
{
    struct mk_buf out = mk_buf_fixed(j->error.message, sizeof j->error.message - 1);
    mk_buf_add(&out, mk_str_from_c(text));
    j->error.line = j->error.column = 1;
    return e;
}

static struct request_json *begin_request_json(struct mk_request *r, size_t max)
{
    struct request_json *j = mk_request_attached(r, &key);
    if (j)
        return j;
    j = mk_request_alloc(r, sizeof *j);
    if (!j)
        return NULL;
    *j = (struct request_json){.result = -EAGAIN, .text = mk_buf_growing(max + 2 * PIECE)};
    if (!mk_request_has_json(r))
        j->result = fail_with_text(j, -EMEDIUMTYPE,
                                   "the content is not JSON: its Content-Type is not application/json");
    else if (mk_request_content_coding(r).p)
        j->result = fail_with_text(j, -EMEDIUMTYPE, "the content has a Content-Encoding");
    else if (mk_request_length(r) > (int64_t)max)
        j->result = fail_with_text(j, -EMSGSIZE, "the content is too long");
    return mk_request_attach(r, &key, j, free_request_json) ? NULL : j;
}

static int receive_text(struct mk_request *r, struct request_json *j, size_t max)
{
    ssize_t n;
    do {
        if (!mk_buf_reserve(&j->text, PIECE))
            return -ENOMEM;
        n = mk_request_read(r, j->text.p + j->text.len, j->text.cap - j->text.len);
        j->text.len += n > 0 ? (size_t)n : 0;
    } while (n > 0 && j->text.len <= max);
    return n == -EMSGSIZE || j->text.len > max ? fail_with_text(j, -EMSGSIZE, "the content is too long")
                                               : (int)n;
}

int mk_request_json(struct mk_request *r, const struct mk_json_limits *limits,
                    const struct mk_json_value **value, struct mk_json_error *error)
{
    static const struct mk_json_error no_memory;
    const struct mk_allocator memory = mk_request_allocator(r);
    size_t max = limits && limits->size ? limits->size : SIZE_DEFAULT;
    if (max > text_max)
        max = text_max;
    struct request_json *j = begin_request_json(r, max);
    if (j && j->result == -EAGAIN) {
        j->result = receive_text(r, j, max);
        if (!j->result)
            j->result = mk_json_parse(mk_buf_str(&j->text), &memory, limits, &j->value, &j->error);
        if (j->result != -EAGAIN)
            mk_buf_free(&j->text);
    }
    *value = j && !j->result ? &j->value : NULL;
    if (error)
        *error = j ? j->error : no_memory;
    return j ? j->result : -ENOMEM;
}

unsigned mk_json_status(int error)
{
    return error == -EINVAL ? 422 : mk_form_status(error);
}
