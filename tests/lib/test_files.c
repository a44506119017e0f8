/* SPDX-License-Identifier: Apache-2.0 */
/* mk_server_add_files(): serves files from the program's memory, with validators, ranges and compressed
 * variants. */
#include <stdlib.h>

#include "lib/embed.h"

static const struct mk_memory_file files[] = {
    {.path = "/index.html", .content = MK_STR_INIT("<p>page</p>")},
    {.path = "/docs/index.html", .content = MK_STR_INIT("<p>docs</p>")},
    {.path = "/app.js",
     .content = MK_STR_INIT("0123456789"),
     .br = MK_STR_INIT("BR"),
     .gzip = MK_STR_INIT("GZ"),
     .modified = 784111777},
    {.path = "/data", .content = MK_STR_INIT("x"), .type = "application/x-own"},
    {.path = "/empty.txt"},
};

static const char *request(unsigned port, const char *head, const char *fields)
{
    char text[512];
    int fd = dial(port);
    int len =
        snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n", head, fields);
    assert_true(fd >= 0);
    assert_int_equal(send(fd, text, (size_t)len, MSG_NOSIGNAL), len);
    return receive_all(fd);
}

static unsigned port;
static struct mk_server *server;

static int start(void **state)
{
    (void)state;
    server = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_add_files(server, files, sizeof files / sizeof *files, sizeof *files), 0);
    assert_int_equal(mk_server_start(server, 1), 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    mk_server_free(server);
    return 0;
}

static void file_is_served_with_its_type(void **state)
{
    (void)state;
    const char *reply = request(port, "GET /index.html", "");
    assert_holds(reply, "HTTP/1.1 200 ");
    assert_holds(reply, "Content-Type: text/html; charset=utf-8\r\n");
    assert_holds(reply, "Content-Length: 11\r\n");
    assert_holds(reply, "\r\n\r\n<p>page</p>");
    assert_null(strstr(reply, "Last-Modified"));
    assert_holds(request(port, "GET /data", ""), "Content-Type: application/x-own\r\n");
    assert_holds(request(port, "GET /empty.txt", ""), "Content-Length: 0\r\n");
    assert_holds(request(port, "GET /none", ""), "HTTP/1.1 404 ");
    assert_holds(request(port, "POST /data", "Content-Length: 0\r\n"), "HTTP/1.1 405 ");
}

static void index_is_served_for_its_folder(void **state)
{
    (void)state;
    assert_holds(request(port, "GET /", ""), "<p>page</p>");
    assert_holds(request(port, "GET /docs/", ""), "<p>docs</p>");
}

static void head_has_no_body(void **state)
{
    (void)state;
    const char *reply = request(port, "HEAD /app.js", "");
    assert_holds(reply, "Content-Length: 10\r\n");
    assert_holds(reply, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    assert_string_equal(strstr(reply, "\r\n\r\n"), "\r\n\r\n");
}

/* Returns the value of the ETag header, as text. */
static const char *etag_of(const char *reply)
{
    static char buffer[64];
    const char *from = strstr(reply, "ETag: ");
    assert_non_null(from);
    snprintf(buffer, sizeof buffer, "%.*s", (int)strcspn(from + 6, "\r"), from + 6);
    return buffer;
}

static void conditions_are_evaluated(void **state)
{
    (void)state;
    char fields[128];
    snprintf(fields, sizeof fields, "If-None-Match: %s\r\n", etag_of(request(port, "GET /app.js", "")));
    const char *reply = request(port, "GET /app.js", fields);
    assert_holds(reply, "HTTP/1.1 304 ");
    assert_string_equal(strstr(reply, "\r\n\r\n"), "\r\n\r\n");
    assert_holds(request(port, "GET /index.html", fields), "HTTP/1.1 200 ");
    assert_holds(request(port, "GET /app.js", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
                 "HTTP/1.1 304 ");
    assert_holds(request(port, "GET /app.js", "If-Match: \"other\"\r\n"), "HTTP/1.1 412 ");
}

static void ranges_are_served(void **state)
{
    (void)state;
    const char *reply = request(port, "GET /app.js", "Range: bytes=2-4\r\n");
    assert_holds(reply, "HTTP/1.1 206 ");
    assert_holds(reply, "Content-Range: bytes 2-4/10\r\n");
    assert_holds(reply, "\r\n\r\n234");
    assert_holds(request(port, "GET /app.js", "Range: bytes=99-\r\n"), "HTTP/1.1 416 ");
    assert_holds(request(port, "GET /app.js", "Range: bytes=0-1,8-9\r\n"), "multipart/byteranges");
}

static void variant_is_chosen_by_accept_encoding(void **state)
{
    (void)state;
    char plain[64];
    const char *reply = request(port, "GET /app.js", "");
    assert_holds(reply, "Vary: Accept-Encoding\r\n");
    assert_null(strstr(reply, "Content-Encoding"));
    snprintf(plain, sizeof plain, "%s", etag_of(reply));
    reply = request(port, "GET /app.js", "Accept-Encoding: gzip, br\r\n");
    assert_holds(reply, "Content-Encoding: br\r\n");
    assert_holds(reply, "\r\n\r\nBR");
    assert_string_not_equal(etag_of(reply), plain);
    assert_holds(request(port, "GET /app.js", "Accept-Encoding: gzip\r\n"), "\r\n\r\nGZ");
    assert_holds(request(port, "GET /app.js", "Accept-Encoding: br;q=0.5, gzip\r\n"), "\r\n\r\nGZ");
    assert_null(strstr(request(port, "GET /data", "Accept-Encoding: gzip\r\n"), "Vary"));
}

static void invalid_file_is_refused(void **state)
{
    (void)state;
    struct mk_server *s = mk_server_new(NULL);
    static const char *const wrong[] = {NULL, "", "app.js", "/a b", "/:id", "/*rest", "/a\r\nb"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct mk_memory_file file = {.path = wrong[i]};
        assert_int_equal(mk_server_add_files(s, &file, 1, sizeof file), -EINVAL);
        assert_true(*mk_server_error(s));
    }
    assert_int_equal(mk_server_add_files(s, files, 1, 8), -EINVAL);
    const struct mk_memory_file injected = {.path = "/a", .type = "text/html\r\nSet-Cookie: a=b"};
    assert_int_equal(mk_server_add_files(s, &injected, 1, sizeof injected), -EINVAL);
    assert_int_equal(mk_server_add_files(s, files, 1, sizeof *files), 0);
    assert_int_equal(mk_server_add_files(s, files, 1, sizeof *files), -EEXIST);
    mk_server_free(s);
}

/* A program that was built with older headers, whose struct had only these members. */
static void files_in_smaller_structs_are_served(void **state)
{
    (void)state;
    struct older_file {
        const char *path;
        mk_str content;
    };
    struct older_file *older = malloc(2 * sizeof *older); /* AddressSanitizer reports reads beyond it */
    unsigned older_port;
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &older_port);
    older[0] = (struct older_file){"/first.txt", MK_STR("first")};
    older[1] = (struct older_file){"/second.txt", MK_STR("second")};
    assert_int_equal(
        mk_server_add_files(s, (const struct mk_memory_file *)(const void *)older, 2, sizeof *older), 0);
    free(older);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_holds(request(older_port, "GET /first.txt", ""), "\r\n\r\nfirst");
    assert_holds(request(older_port, "GET /second.txt", ""), "\r\n\r\nsecond");
    mk_server_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(file_is_served_with_its_type, start, stop),
        cmocka_unit_test_setup_teardown(index_is_served_for_its_folder, start, stop),
        cmocka_unit_test_setup_teardown(head_has_no_body, start, stop),
        cmocka_unit_test_setup_teardown(conditions_are_evaluated, start, stop),
        cmocka_unit_test_setup_teardown(ranges_are_served, start, stop),
        cmocka_unit_test_setup_teardown(variant_is_chosen_by_accept_encoding, start, stop),
        cmocka_unit_test(invalid_file_is_refused),
        cmocka_unit_test(files_in_smaller_structs_are_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
