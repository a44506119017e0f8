/* SPDX-License-Identifier: Apache-2.0 */
#include "web/error_page.h"

#include "http/status.h"
#include "unit/web/site_case.h"

static struct mk_exchange *fill(const struct mk_vhost *host, unsigned status)
{
    struct mk_exchange *x = site_get(&site, "/", "");
    mk_error_page_fill(host, &x->request, &x->response, status);
    assert_int_equal(x->response.status, status);
    return x;
}

static void check_builtin(struct mk_exchange *x)
{
    char number[8];
    snprintf(number, sizeof number, "%u", x->response.status);
    assert_str(site_field(x, "Content-Type"), "text/html; charset=utf-8");
    mk_str page = site_content(x);
    assert_true(mk_str_starts(page, MK_STR("<!doctype html>")));
    assert_true(mk_str_ends(page, MK_STR("</html>\n")));
    assert_non_null(strstr(page.p, number));
    assert_int_equal(x->response.content.length, page.len);
}

static void error_page_exists_for_every_status(void **state)
{
    (void)state;
    for (unsigned status = 400; status < 600; status++) {
        struct mk_exchange *x = fill(&site.host, status);
        check_builtin(x);
        mk_exchange_free(x);
        x = fill(NULL, status);
        check_builtin(x);
        mk_exchange_free(x);
    }
}

/* Each status of the IANA registry has its own sentence; unknown statuses share one. */
static void error_page_every_status_has_sentence(void **state)
{
    (void)state;
    char texts[256][128];
    size_t n = 0;
    for (unsigned status = 300; status < 600; status++) {
        struct mk_exchange *x = fill(&site.host, status);
        mk_str page = site_content(x);
        const char *begin = strstr(page.p, "<p>"), *end = strstr(page.p, "</p>");
        assert_true(begin && end && end - begin > 20 && end[-1] == '.');
        if (status >= 400 && mk_status_text(status).len) {
            snprintf(texts[n], sizeof *texts, "%.*s", (int)(end - begin), begin);
            for (size_t i = 0; i < n; i++)
                assert_string_not_equal(texts[i], texts[n]);
            n++;
        }
        mk_exchange_free(x);
    }
    assert_true(n >= 39);
}

static const struct mk_error_page pages[] = {
    {.status = 404, .path = MK_STR_INIT("errors/404.html")},
    {.status = 500, .path = MK_STR_INIT("errors/large.png")},
    {.status = 403, .path = MK_STR_INIT("errors/missing.html")},
    {.status = 503, .path = MK_STR_INIT("errors")},
};

static void add_pages(void)
{
    site.host.error_pages = pages;
    site.host.n_error_pages = MK_LEN(pages);
    folder_add_folder(&site.folder, "errors");
    site_add(&site, "errors/404.html", MK_STR("nothing <b>here</b>"));
    struct mk_buf large = mk_buf_growing(1 << 20);
    mk_buf_addf(&large, "%10000d", 1);
    site_add(&site, "errors/large.png", mk_buf_str(&large));
    mk_buf_free(&large);
}

static void error_page_of_vhost_is_used(void **state)
{
    (void)state;
    add_pages();
    struct mk_exchange *x = fill(&site.host, 404);
    assert_str(site_field(x, "Content-Type"), "text/html; charset=utf-8");
    assert_str(site_content(x), "nothing <b>here</b>");
    assert_null(site_field(x, "ETag").p);
    mk_exchange_free(x);
    x = fill(&site.host, 500);
    assert_str(site_field(x, "Content-Type"), "image/png");
    assert_int_equal(x->response.content.length, 10000);
    assert_int_equal(site_content(x).len, 10000);
    mk_exchange_free(x);
    x = fill(&site.host, 410);
    check_builtin(x);
    mk_exchange_free(x);
    assert_int_equal(site.n_logged, 0);
}

static void error_page_missing_file_is_replaced_and_logged(void **state)
{
    (void)state;
    add_pages();
    struct mk_exchange *x = fill(&site.host, 403);
    check_builtin(x);
    mk_exchange_free(x);
    assert_int_equal(site.n_logged, 1);
    assert_non_null(strstr(site.logged, "errors/missing.html"));
    x = fill(&site.host, 503); /* a folder */
    check_builtin(x);
    mk_exchange_free(x);
}

static void error_page_file_is_held_by_request(void **state)
{
    (void)state;
    add_pages();
    struct mk_exchange *x = fill(&site.host, 500);
    assert_int_equal(unlinkat(site.folder.fd, "errors/large.png", 0), 0);
    mk_file_cache_fini(&site.web.files);
    assert_int_equal(site_content(x).len, 10000);
    mk_exchange_free(x);
    assert_int_equal(mk_file_cache_init(&site.web.files, &site_limits), 0);
}

static unsigned n_closed;

static ssize_t pull(void *ctx, char *buffer, size_t cap)
{
    (void)ctx;
    (void)cap;
    buffer[0] = 's';
    return 1;
}

static void close_source(void *ctx)
{
    (void)ctx;
    n_closed++;
}

static void error_page_replaces_body_and_keeps_headers(void **state)
{
    (void)state;
    static const struct mk_body_source_ops source = {.read = pull, .close = close_source};
    static const struct mk_header_block block = {.text = MK_STR_INIT("")};
    n_closed = 0;
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_response_add_header(&x->response, MK_STR("Allow"), MK_STR("GET")), 0);
    mk_response_add_header_block(&x->response, &block);
    assert_int_equal(mk_response_set_body_source(&x->response, &source, NULL, 5), 0);
    mk_error_page_fill(&site.host, &x->request, &x->response, 405);
    assert_int_equal(n_closed, 1);
    assert_int_equal(x->response.n_blocks, 0);
    assert_str(site_field(x, "Allow"), "GET");
    check_builtin(x);
    mk_exchange_free(x);
    assert_int_equal(n_closed, 1);
}

static void error_page_as_json_has_problem_details(void **state)
{
    (void)state;
    site.host.error_format = MK_ERROR_FORMAT_JSON;
    for (unsigned status = 400; status < 600; status++) {
        struct mk_exchange *x = fill(&site.host, status);
        char expected[32];
        snprintf(expected, sizeof expected, "\"status\":%u,\"detail\":\"", status);
        assert_str(site_field(x, "Content-Type"), "application/problem+json");
        mk_str page = site_content(x);
        assert_non_null(strstr(page.p, expected));
        assert_true(mk_str_starts(page, mk_status_text(status).len ? MK_STR("{\"title\":\"")
                                                                   : MK_STR("{\"status\"")));
        assert_true(mk_str_ends(page, MK_STR("\"}\n")));
        assert_null(strstr(page.p, "page")); /* the client is a program, not a visitor */
        assert_null(strstr(page.p, "browser"));
        assert_true(x->response.is_error_page);
        mk_exchange_free(x);
    }
    struct mk_exchange *x = fill(&site.host, 404);
    assert_str(site_content(x), "{\"title\":\"Not Found\",\"status\":404,"
                                "\"detail\":\"The resource does not exist.\"}\n");
    mk_exchange_free(x);
}

static void error_page_as_json_yields_to_page_of_vhost(void **state)
{
    (void)state;
    add_pages();
    site.host.error_format = MK_ERROR_FORMAT_JSON;
    struct mk_exchange *x = fill(&site.host, 404);
    assert_str(site_content(x), "nothing <b>here</b>");
    mk_exchange_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(error_page_exists_for_every_status, setup),
        fixture_test(error_page_every_status_has_sentence, setup),
        fixture_test(error_page_of_vhost_is_used, setup),
        fixture_test(error_page_missing_file_is_replaced_and_logged, setup),
        fixture_test(error_page_file_is_held_by_request, setup),
        fixture_test(error_page_replaces_body_and_keeps_headers, setup),
        fixture_test(error_page_as_json_has_problem_details, setup),
        fixture_test(error_page_as_json_yields_to_page_of_vhost, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
