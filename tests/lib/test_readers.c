/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what a program reads from requests: cookies, forms, uploads and JSON. */
#include "lib/embed.h"

#include <monkey/cookie.h>
#include <monkey/form.h>
#include <monkey/json_value.h>
#include <monkey/spool.h>

/* Sends a request as it is, and returns the response. */
static const char *exchange(unsigned port, const char *text)
{
    int fd = dial(port);
    assert_true(fd >= 0);
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
    return receive_all(fd);
}

static struct mk_server *start(const char *route, mk_server_fn *fn, unsigned *port)
{
    struct mk_server *s = server_with(route, fn, NULL, port);
    assert_int_equal(mk_server_start(s, 1), 0);
    return s;
}

#define HEAD(method, path) method " " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"

/* ---- Cookies ---- */

static enum mk_verdict respond_cookie(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    char room[256];
    struct mk_buf out = mk_buf_fixed(room, sizeof room);
    mk_str value;
    int e = mk_request_cookie(request, "a", &value);
    assert_true(e ? e == -ENOENT && !value.p : value.p && !value.p[value.len]);
    mk_buf_addf(&out, "%d <%s>", e, e ? "" : value.p);
    assert_int_equal(
        mk_response_add_cookie(request, response, &(struct mk_cookie){.name = "b", .value = MK_STR("1")}), 0);
    assert_int_equal(
        mk_response_add_cookie(request, response, &(struct mk_cookie){.name = "b", .value = MK_STR("1;")}),
        -EINVAL);
    mk_response_set_body(response, mk_buf_str(&out));
    return MK_DONE;
}

static void cookie_is_found_empty_or_absent(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = start("GET /", respond_cookie, &port);
    assert_holds(exchange(port, HEAD("GET", "/") "Cookie: x=1; a=two\r\n\r\n"), "\r\n\r\n0 <two>");
    assert_holds(exchange(port, HEAD("GET", "/") "Cookie: x=1\r\nCookie: a=3\r\n\r\n"), "\r\n\r\n0 <3>");
    assert_holds(exchange(port, HEAD("GET", "/") "Cookie: a=\r\n\r\n"), "\r\n\r\n0 <>");
    assert_holds(exchange(port, HEAD("GET", "/") "Cookie: A=1; aa=2\r\n\r\n"), "\r\n\r\n-2 <>");
    const char *reply = exchange(port, HEAD("GET", "/") "\r\n");
    assert_holds(reply, "\r\n\r\n-2 <>");
    assert_holds(reply, "\r\nSet-Cookie: b=1; Path=/; HttpOnly; SameSite=Lax\r\n");
    assert_null(strstr(strstr(reply, "Set-Cookie") + 1, "Set-Cookie"));
    mk_server_free(s);
}

/* ---- Forms ---- */

static enum mk_verdict fail_with(struct mk_request *request, struct mk_response *response, int e)
{
    mk_str why = mk_request_form_error(request);
    char room[256];
    struct mk_buf out = mk_buf_fixed(room, sizeof room);
    assert_true(!why.p || !why.p[why.len]);
    mk_buf_addf(&out, "%d %s", e, why.p ? why.p : "-");
    mk_response_set_status(response, mk_form_status(e));
    mk_response_set_body(response, mk_buf_str(&out));
    return MK_DONE;
}

static const struct mk_form_limits form_limits = {.size = 1000, .fields = 4, .name = 8, .value = 600};
static const struct mk_multipart_limits file_limits = {.size = 300000, .file = 200000};

static atomic_int n_calls;

/* Responds with the fields of the form, and with the names, type, size, first and last bytes of each file. */
static enum mk_verdict respond_form(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    const struct mk_form *form, *again;
    char room[4096];
    struct mk_buf out = mk_buf_fixed(room, sizeof room);
    int e = mk_request_form(request, &form_limits, &file_limits, &form);
    atomic_fetch_add(&n_calls, 1);
    if (e == -EAGAIN)
        return MK_WAIT;
    assert_int_equal(mk_request_form(request, NULL, NULL, &again), e);
    assert_ptr_equal(again, form);
    if (e)
        return fail_with(request, response, e);
    for (size_t i = 0; i < form->n; i++)
        mk_buf_addf(&out, "%s=%s;", form->fields[i].name.p, form->fields[i].value.p);
    for (size_t i = 0; i < form->n_uploads; i++) {
        const struct mk_upload *u = &form->uploads[i];
        char first[4] = "", last[4] = "";
        assert_ptr_equal(mk_form_upload(form, u->name.p), u);
        assert_int_equal(mk_upload_read(request, u, first, 3, 0), u->size < 3 ? u->size : 3);
        assert_int_equal(mk_upload_read(request, u, last, 3, u->size - 1), 1);
        assert_int_equal(mk_upload_read(request, u, last, 3, u->size), 0);
        mk_buf_addf(&out, "%s:%s:%s:%llu:%s:%s;", u->name.p, u->file_name.p,
                    u->content_type.p ? u->content_type.p : "-", (unsigned long long)u->size, first, last);
    }
    mk_buf_addf(&out, " a %d, second a %d", mk_form_get(form, "a").p ? 1 : 0,
                mk_form_get_at(form, "a", 1).p ? 1 : 0);
    mk_response_set_body(response, mk_buf_str(&out));
    return MK_DONE;
}

/* Sends a POST of this type in two pieces, and returns the response. */
static const char *post(unsigned port, const char *headers, const char *body, size_t len, size_t pause_at)
{
    char head[512];
    int fd = dial(port),
        n = snprintf(head, sizeof head, HEAD("POST", "/") "%s\r\nContent-Length: %zu\r\n\r\n", headers, len);
    assert_true(fd >= 0 && n < (int)sizeof head);
    assert_int_equal(send(fd, head, (size_t)n, MSG_NOSIGNAL), n);
    if (pause_at) {
        assert_int_equal(send(fd, body, pause_at, MSG_NOSIGNAL), pause_at);
        usleep(30000);
    }
    for (size_t at = pause_at; at < len;) {
        ssize_t sent = send(fd, body + at, len - at, MSG_NOSIGNAL);
        if (sent < 0) /* the server has responded early */
            break;
        at += (size_t)sent;
    }
    return receive_all(fd);
}

#define URLENCODED "Content-Type: application/x-www-form-urlencoded"
#define MULTIPART  "Content-Type: multipart/form-data; boundary=B"

static const char *post_text(unsigned port, const char *headers, const char *body)
{
    return post(port, headers, body, strlen(body), 0);
}

static void form_is_received_when_it_is_complete(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = start("POST /", respond_form, &port);
    assert_holds(post_text(port, URLENCODED, "a=1&b=x+y%21&a="), "\r\n\r\na=1;b=x y!;a=; a 1, second a 1");
    assert_holds(post_text(port, URLENCODED "; charset=utf-8", ""), "\r\n\r\n a 0, second a 0");
    atomic_store(&n_calls, 0);
    assert_holds(post(port, URLENCODED, "a=12345678", 10, 4), "\r\n\r\na=12345678; a 1, second a 0");
    assert_true(atomic_load(&n_calls) >= 2);
    mk_server_free(s);
}

/* A program may pass the maximum of the type for "no limit". */
static enum mk_verdict respond_without_limits(struct mk_request *request, struct mk_response *response,
                                              void *data)
{
    (void)data;
    static const struct mk_form_limits fields = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, {0}};
    static const struct mk_multipart_limits files = {.size = UINT64_MAX, .file = UINT64_MAX};
    static const struct mk_json_limits limits = {.size = SIZE_MAX};
    const struct mk_json_value *v;
    const struct mk_form *form;
    bool is_json = mk_request_has_json(request);
    int e = is_json ? mk_request_json(request, &limits, &v, NULL)
                    : mk_request_form(request, &fields, &files, &form);
    if (e == -EAGAIN)
        return MK_WAIT;
    if (e)
        return fail_with(request, response, e);
    mk_response_set_body(response, is_json ? mk_json_as_string(v) : mk_form_get(form, "a"));
    return MK_DONE;
}

static void limits_may_be_the_maximum_of_their_types(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = start("POST /", respond_without_limits, &port);
    assert_holds(post_text(port, URLENCODED, "a=1"), "\r\n\r\n1");
    assert_holds(
        post_text(port, MULTIPART, "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n2\r\n--B--\r\n"),
        "\r\n\r\n2");
    assert_holds(post_text(port, "Content-Type: application/json", "\"3\""), "\r\n\r\n3");
    mk_server_free(s);
}

static void form_errors_have_status_and_text(void **state)
{
    (void)state;
    static char large[2000];
    unsigned port;
    struct mk_server *s = start("POST /", respond_form, &port);
    memset(large, 'x', sizeof large - 1);
    const struct {
        const char *headers, *body, *status, *text;
    } cases[] = {
        {URLENCODED, "a=%4", "400", "the form has a % without two hexadecimal digits"},
        {URLENCODED, "a&b&c&d&e", "413", "the form is too long, has too many fields, or a field is too long"},
        {URLENCODED, large, "413", "the form is too long"},
        {"Content-Type: text/plain", "a=1", "415", "the content is not a form"},
        {"X: y", "a=1", "415", "the content is not a form"},
        {URLENCODED "\r\nContent-Encoding: gzip", "a=1", "415", "the content has a Content-Encoding"},
        {"Content-Type: multipart/form-data", "--B", "400", "multipart/form-data without a boundary"},
        {MULTIPART, "--B\r\n\r\n", "400", "multipart/form-data, part "},
        {MULTIPART, "--B\r\nContent-Disposition: form-data; name=a\r\n\r\nx", "400",
         "the content ends without a closing boundary"},
        {MULTIPART, "--B\r\nContent-Disposition: form-data; name=abcdefghi\r\n\r\nx\r\n--B--", "413",
         "too many fields, or a name is too long"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *reply = post_text(port, cases[i].headers, cases[i].body);
        assert_holds(reply, cases[i].status);
        assert_holds(reply, cases[i].text);
        assert_memory_equal(reply + 9, cases[i].status, 3);
    }
    mk_server_free(s);
}

/* The same table is in docs/reference/errors.md. */
static void form_errors_map_to_a_status(void **state)
{
    (void)state;
    static const struct {
        int error;
        unsigned status;
    } all[] = {{-EBADMSG, 400}, {-ECONNRESET, 400}, {-EMSGSIZE, 413},  {-EMEDIUMTYPE, 415},
               {-ENOMEM, 503},  {-EMFILE, 503},     {-ENFILE, 503},    {-EDQUOT, 503},
               {-ENOSPC, 507},  {-EIO, 500},        {-EOPNOTSUPP, 500}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool is_type = all[i].error == -EMEDIUMTYPE;
        assert_int_equal(mk_form_status(all[i].error), all[i].status);
        assert_int_equal(mk_json_status(all[i].error), all[i].status);
        assert_int_equal(mk_spool_status(all[i].error), is_type ? 500 : all[i].status);
    }
    static const struct {
        int error;
        unsigned status;
    } json[] = {{-EINVAL, 422}, {-EMEDIUMTYPE, 415}, {-EBADMSG, 400}};
    for (size_t i = 0; i < sizeof json / sizeof *json; i++)
        assert_int_equal(mk_json_status(json[i].error), json[i].status);
    assert_int_equal(mk_form_status(-EINVAL), 500);
}

/* A multipart form with a field and a file of this size. */
static size_t write_upload(char *body, size_t cap, size_t size)
{
    int n = snprintf(body, cap,
                     "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n"
                     "--B\r\nContent-Disposition: form-data; name=\"none\"; filename=\"\"\r\n\r\n\r\n"
                     "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.bin\"\r\n"
                     "Content-Type: image/png\r\n\r\n");
    assert_true((size_t)n + size + 9 < cap);
    memset(body + n, 'm', size);
    body[n] = 'b';
    body[(size_t)n + size - 1] = 'e';
    memcpy(body + n + size, "\r\n--B--\r\n", 9);
    return (size_t)n + size + 9;
}

static void form_with_files_keeps_them_in_a_spool(void **state)
{
    (void)state;
    static char body[400000];
    unsigned port;
    struct mk_server *s = server_with("POST /", respond_form, NULL, &port);
    assert_int_equal(mk_server_enable_body_spool(s), 0);
    assert_int_equal(mk_server_set(s, "SERVER", "SpoolFolder", "/tmp"), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_holds(post(port, MULTIPART, body, write_upload(body, sizeof body, 10), 50),
                 "\r\n\r\na=1;f:x.bin:image/png:10:bmm:e; a 1");
    assert_holds(post(port, MULTIPART, body, write_upload(body, sizeof body, 150000), 100000),
                 "\r\n\r\na=1;f:x.bin:image/png:150000:bmm:e; a 1");
    assert_holds(post(port, MULTIPART, body, write_upload(body, sizeof body, 250000), 0),
                 "the file exceeds `.file`");
    assert_holds(post(port, MULTIPART, body, write_upload(body, sizeof body, 350000), 0), "HTTP/1.1 413 ");
    mk_server_free(s);
}

static void form_with_files_needs_a_spool_folder(void **state)
{
    (void)state;
    static char body[400000];
    unsigned port;
    struct mk_server *s = start("POST /", respond_form, &port);
    assert_holds(post(port, MULTIPART, body, write_upload(body, sizeof body, 50000), 0),
                 "f:x.bin:image/png:50000");
    assert_holds(post(port, MULTIPART, body, write_upload(body, sizeof body, 150000), 0), "HTTP/1.1 500 ");
    assert_int_equal(mk_server_enable_body_spool(s), -EBUSY);
    mk_server_free(s);
}

static enum mk_verdict respond_query(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    struct mk_form query;
    int e = mk_request_query_form(request, &form_limits, &query);
    if (e)
        return fail_with(request, response, e);
    mk_str q = mk_form_get(&query, "q");
    mk_response_set_body(response, q.p ? q : MK_STR("(absent)"));
    return MK_DONE;
}

static void query_is_read_as_form(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = start("GET /", respond_query, &port);
    assert_holds(fetch(port, "GET", "/?p=1&q=a+b%26"), "\r\n\r\na b&");
    assert_holds(fetch(port, "GET", "/"), "\r\n\r\n(absent)");
    assert_holds(fetch(port, "GET", "/?q=%zz"), "HTTP/1.1 400 ");
    assert_holds(fetch(port, "GET", "/?1&2&3&4&5"), "HTTP/1.1 413 ");
    mk_server_free(s);
}

/* ---- Streamed uploads ---- */

struct sink {
    char text[256];
    size_t bytes;
    bool fails;
};

static int on_part(void *ctx, const struct mk_multipart_part *part)
{
    struct sink *s = ctx;
    size_t n = strlen(s->text);
    snprintf(s->text + n, sizeof s->text - n, "%.*s/%.*s;", MK_STR_ARG(part->name),
             MK_STR_ARG(part->file_name));
    return s->fails ? -ENOSPC : 0;
}

static int on_data(void *ctx, mk_str bytes)
{
    ((struct sink *)ctx)->bytes += bytes.len;
    return 0;
}

static const struct mk_multipart_ops sink_ops = {.part = on_part, .data = on_data};

static enum mk_verdict respond_upload(struct mk_request *request, struct mk_response *response, void *fails)
{
    static const struct mk_multipart_limits limits = {.file = 300000};
    struct sink *s = mk_request_data(request);
    if (!s) {
        s = mk_request_alloc(request, sizeof *s);
        assert_non_null(s);
        memset(s, 0, sizeof *s);
        s->fails = fails;
        mk_request_set_data(request, s);
    }
    int e = mk_request_multipart(request, &limits, &sink_ops, s);
    atomic_fetch_add(&n_calls, 1);
    if (e == -EAGAIN)
        return MK_WAIT;
    if (e)
        return fail_with(request, response, e);
    char room[300];
    struct mk_buf out = mk_buf_fixed(room, sizeof room);
    mk_buf_addf(&out, "%s %zu", s->text, s->bytes);
    mk_response_set_body(response, mk_buf_str(&out));
    return MK_DONE;
}

static void upload_is_received_part_by_part(void **state)
{
    (void)state;
    static char body[400000];
    unsigned port;
    struct mk_server *s = start("POST /", respond_upload, &port);
    atomic_store(&n_calls, 0);
    assert_holds(post(port, MULTIPART, body, write_upload(body, sizeof body, 250000), 100000),
                 "\r\n\r\na/;none/;f/x.bin; 250001");
    assert_true(atomic_load(&n_calls) >= 2);
    const char *reply = post(port, MULTIPART, body, write_upload(body, sizeof body, 350000), 0);
    assert_holds(reply, "HTTP/1.1 413 ");
    assert_holds(reply, "multipart/form-data, part 3: the file exceeds `.file`");
    assert_holds(post_text(port, MULTIPART, "--B\r\nContent"), "part 0: the content ends in the headers");
    assert_holds(post_text(port, URLENCODED, "a=1"), "the content is not multipart/form-data");
    mk_server_free(s);
}

static void upload_error_of_a_callback_is_returned(void **state)
{
    (void)state;
    static char body[4000];
    unsigned port;
    struct mk_server *s = server_with("POST /", respond_upload, &port, &port);
    assert_int_equal(mk_server_start(s, 1), 0);
    const char *reply = post(port, MULTIPART, body, write_upload(body, sizeof body, 100), 0);
    assert_holds(reply, "HTTP/1.1 507 ");
    assert_holds(reply, "\r\n\r\n-28 -");
    mk_server_free(s);
}

/* ---- JSON ---- */

static enum mk_verdict respond_json(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    static const struct mk_json_limits limits = {.size = 100};
    const struct mk_json_value *v, *again;
    struct mk_json_error error;
    char room[512];
    struct mk_buf out = mk_buf_fixed(room, sizeof room);
    int e = mk_request_json(request, &limits, &v, &error);
    atomic_fetch_add(&n_calls, 1);
    if (e == -EAGAIN)
        return MK_WAIT;
    assert_int_equal(mk_request_json(request, &limits, &again, NULL), e);
    assert_ptr_equal(again, v);
    if (e) {
        mk_buf_addf(&out, "%zu:%zu %s", error.line, error.column, error.message);
        mk_response_set_status(response, mk_json_status(e));
    } else {
        struct mk_json_writer w = mk_json_writer_to(&out);
        mk_json_value_write(&w, mk_json_find(v, "/a/1"));
    }
    mk_response_set_body(response, mk_buf_str(&out));
    return MK_DONE;
}

#define JSON "Content-Type: application/json"

static void json_is_received_when_it_is_complete(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = start("POST /", respond_json, &port);
    assert_holds(post_text(port, JSON, "{\"a\": [1, {\"b\": 2}]}"), "\r\n\r\n{\"b\":2}");
    assert_holds(post_text(port, "Content-Type: application/problem+json; charset=utf-8", "{\"a\":[]}"),
                 "\r\n\r\nnull");
    atomic_store(&n_calls, 0);
    assert_holds(post(port, JSON, "{\"a\": [1, 12345]}", 17, 8), "\r\n\r\n12345");
    assert_true(atomic_load(&n_calls) >= 2);
    mk_server_free(s);
}

static void json_errors_have_status_and_position(void **state)
{
    (void)state;
    static char large[200];
    unsigned port;
    struct mk_server *s = start("POST /", respond_json, &port);
    memset(large, ' ', sizeof large - 1);
    const struct {
        const char *headers, *body, *status, *text;
    } cases[] = {
        {JSON, "{\"a\":\n x}", "400", "\r\n\r\n2:2 expected a value, not `x`"},
        {JSON, "", "400", "1:1 expected a value, but the text ends"},
        {JSON, "{\"a\":1,\"a\":2}", "422", "1:8 `a` occurs more than once"},
        {JSON, large, "413", "the content is too long"},
        {"Content-Type: text/plain", "{}", "415", "the content is not JSON"},
        {"X: y", "{}", "415", "the content is not JSON"},
        {JSON "\r\nContent-Encoding: gzip", "{}", "415", "the content has a Content-Encoding"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *reply = post_text(port, cases[i].headers, cases[i].body);
        assert_memory_equal(reply + 9, cases[i].status, 3);
        assert_holds(reply, cases[i].text);
    }
    mk_server_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cookie_is_found_empty_or_absent),
        cmocka_unit_test(form_is_received_when_it_is_complete),
        cmocka_unit_test(limits_may_be_the_maximum_of_their_types),
        cmocka_unit_test(form_errors_have_status_and_text),
        cmocka_unit_test(form_errors_map_to_a_status),
        cmocka_unit_test(form_with_files_keeps_them_in_a_spool),
        cmocka_unit_test(form_with_files_needs_a_spool_folder),
        cmocka_unit_test(query_is_read_as_form),
        cmocka_unit_test(upload_is_received_part_by_part),
        cmocka_unit_test(upload_error_of_a_callback_is_returned),
        cmocka_unit_test(json_is_received_when_it_is_complete),
        cmocka_unit_test(json_errors_have_status_and_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
