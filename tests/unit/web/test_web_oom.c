/* SPDX-License-Identifier: Apache-2.0 */
/* The dispatcher when memory runs out: every request gets its response or a 503, and nothing leaks. */
#include "unit/oom.h"
#include "unit/site.h"
#include "web/filter.h"

enum { LARGE = 3000 };

static struct site site;
static const char *target, *fields;
static unsigned expected; /* status of the response if no allocation fails */
static const char *expected_content;

static const struct mk_error_page pages[] = {{.status = 404, .path = MK_STR_INIT("404.html")}};

static void setup(void)
{
    struct mk_buf large = mk_buf_growing(LARGE);
    site_setup(&site);
    site.host.error_pages = pages;
    site.host.n_error_pages = MK_LEN(pages);
    folder_add_folder(&site.folder, "dir");
    site_add(&site, "page.html", MK_STR("page"));
    site_add(&site, "page.html.gz", MK_STR("gzip"));
    site_add(&site, "404.html", MK_STR("not found"));
    mk_buf_addf(&large, "%3000d", 1);
    site_add(&site, "large", mk_buf_str(&large));
    mk_buf_free(&large);
    mk_file_cache_fini(&site.web.files);
}

static void teardown(void)
{
    assert_int_equal(mk_file_cache_init(&site.web.files, &site_limits), 0);
}

static void check(struct mk_exchange *x)
{
    unsigned status = x->response.status;
    if (status != expected && status != 503)
        fail_msg("%s: %u, not %u", target, status, expected);
    /* The response must have exactly one Content-Type header. */
    unsigned types = 0;
    for (unsigned i = 0; i < x->response.n_fields; i++)
        types += mk_header_find_id(x->response.fields[i].name) == MK_HEADER_CONTENT_TYPE;
    for (unsigned i = 0; i < x->response.n_blocks; i++)
        for (unsigned j = 0; j < x->response.blocks[i]->n; j++)
            types += mk_header_find_id(x->response.blocks[i]->fields[j].name) == MK_HEADER_CONTENT_TYPE;
    if (types > 1)
        fail_msg("%s: %u types of content", target, types);
}

/* Returns true if the response is the expected one. */
static bool run_request(void)
{
    if (mk_file_cache_init(&site.web.files, &site_limits))
        return false;
    struct mk_exchange *x = site_get(&site, target, fields);
    bool ok = x != NULL;
    if (x) {
        assert_true(mk_dispatch_run(x));
        check(x);
        ok = x->response.status == expected && oom.n_failed == 0;
        oom.fail_at = 0;
        mk_str content = site_content(x);
        assert_true(x->response.content.length == content.len);
        if (ok)
            assert_true(mk_str_starts(content, mk_str_from_c(expected_content)));
        mk_exchange_free(x);
    }
    mk_file_cache_fini(&site.web.files);
    mk_arena_cache_fini(&site.blocks);
    return ok;
}

static void try_all(const char *to, const char *with, unsigned status, const char *content)
{
    target = to;
    fields = with;
    expected = status;
    expected_content = content;
    oom_at_each_allocation(run_request);
}

static void web_oom_file(void **state)
{
    (void)state;
    try_all("/page.html", "", 200, "page");
    try_all("/page.html", "Accept-Encoding: gzip\r\n", 200, "gzip");
    try_all("/large", "", 200, "   ");
}

static void web_oom_ranges(void **state)
{
    (void)state;
    try_all("/page.html", "Range: bytes=1-2\r\n", 206, "ag");
    try_all("/page.html", "Range: bytes=0-0,2-2\r\n", 206, "\r\n--");
    try_all("/page.html", "Range: bytes=100-\r\n", 416, "<!doctype");
    try_all("/large", "Range: bytes=0-0,100-200,300-400,500-600\r\n", 206, "\r\n--");
}

static void web_oom_redirects_and_errors(void **state)
{
    (void)state;
    try_all("/dir", "", 301, "<!doctype");
    try_all("/dir/", "", 403, "<!doctype");
    try_all("/nothing", "", 404, "not found");
    try_all("/%zz", "", 400, "<!doctype");
}

/* ---- Bodies that a handler makes ---- */

static enum mk_verdict respond_large_body(struct mk_request *request, struct mk_response *response,
                                          void *data)
{
    char value[500], *large = mk_request_alloc(request, 10000);
    (void)data;
    if (!large)
        return MK_ERROR;
    memset(value, 'v', sizeof value);
    memset(large, 'l', 10000);
    for (int i = 0; i < 40; i++)
        if (mk_response_add_header(response, MK_STR("X-Field"), mk_str_of(value, sizeof value)))
            return MK_ERROR;
    return mk_response_set_body(response, mk_str_of(large, 10000)) ? MK_ERROR : MK_DONE;
}

static bool request_large(void)
{
    static const struct mk_handler handler = {.name = "much", .handle = respond_large_body};
    static const struct mk_route route = {.handler = &handler};
    struct mk_arena_cache *blocks = &site.blocks;
    site.host.routes = &route;
    if (mk_file_cache_init(&site.web.files, &site_limits))
        return false;
    struct mk_exchange *x = site_get(&site, "/", "");
    bool ok = x && mk_dispatch_run(x) && x->response.status == 200;
    if (x) {
        assert_true(x->response.status == 200 || x->response.status == 500 || x->response.status == 503);
        mk_exchange_free(x);
    }
    mk_file_cache_fini(&site.web.files);
    mk_arena_cache_fini(blocks);
    return ok;
}

static void web_oom_large_response_of_handler(void **state)
{
    (void)state;
    oom_at_each_allocation(request_large);
    site.host.routes = &site_route;
}

/* ---- Plugins that change a response ---- */

static unsigned n_taken, n_given_back;
static bool all_well;

static void release_data(void *data)
{
    assert_ptr_equal(data, &site);
    n_given_back++;
}

static ssize_t pull_through(void *ctx, struct mk_filter_next *next, char *buffer, size_t cap)
{
    (void)ctx;
    return mk_filter_next_read(next, buffer, cap);
}

static enum mk_verdict find_out(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct mk_addr peer = {.ip = {[15] = 1}};
    (void)response;
    n_taken++;
    all_well &= mk_request_attach(request, data, &site, release_data) == 0;
    all_well &= mk_request_set_user(request, MK_STR("user")) == 0;
    all_well &= mk_request_set_client_addr(request, &peer) == 0;
    all_well &= mk_request_translate_path(request, MK_STR("/a")).p != NULL;
    return MK_NEXT;
}

static void change(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_filter_ops ops = {.read = pull_through, .close = release_data};
    (void)request;
    (void)data;
    all_well &= mk_response_set_header(response, MK_STR("ETag"), MK_STR("\"other\"")) == 0;
    all_well &= mk_response_remove_header(response, MK_STR("Accept-Ranges")) == 0;
    all_well &= mk_response_add_header_nocopy(response, MK_STR("X-Static"), MK_STR("1")) == 0;
    n_taken += 2;
    all_well &= mk_response_add_filter(response, &ops, &site, MK_LENGTH_UNKNOWN) == 0;
    all_well &= mk_response_add_filter(response, &ops, &site, MK_LENGTH_UNKNOWN) == 0;
}

static bool request_changed(void)
{
    static const struct mk_plugin plugin = {.name = "changes", .on_request = find_out, .on_response = change};
    static struct mk_hook hook = {.plugin = &plugin, .data = &n_taken};
    struct mk_arena_cache *blocks = &site.blocks;
    if (mk_file_cache_init(&site.web.files, &site_limits))
        return false;
    n_taken = n_given_back = 0;
    all_well = true;
    site.host.hooks.request = site.host.hooks.response = (struct mk_hook_list){.at = &hook, .n = 1};
    struct mk_exchange *x = site_get(&site, "/page.html", "");
    bool ok = x && mk_dispatch_run(x) && x->response.status == 200 && all_well;
    if (ok) {
        oom.fail_at = 0;
        assert_str(site_content(x), "page");
        assert_str(site_field(x, "ETag"), "\"other\"");
        assert_null(site_field(x, "Accept-Ranges").p);
    }
    if (x)
        mk_exchange_free(x);
    assert_int_equal(n_taken, n_given_back);
    mk_file_cache_fini(&site.web.files);
    mk_arena_cache_fini(blocks);
    site.host.hooks = (struct mk_hooks){0};
    return ok && oom.n_failed == 0;
}

static void web_oom_changed_response(void **state)
{
    (void)state;
    oom_at_each_allocation(request_changed);
}

static bool answer_with_a_file(void)
{
    char buffer[PATH_MAX];
    int fd = open(folder_path(&site.folder, "large", buffer), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    if (mk_file_cache_init(&site.web.files, &site_limits)) {
        mk_fd_close(&fd);
        return false;
    }
    struct mk_exchange *x = site_get(&site, "/", "");
    bool ok = x && mk_response_set_body_file(&x->response, fd, 0, LARGE) == 0;
    ok &= oom.n_failed == 0; /* an earlier failure has already produced another response */
    if (x)
        mk_exchange_free(x);
    else
        close(fd);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    mk_file_cache_fini(&site.web.files);
    mk_arena_cache_fini(&site.blocks);
    return ok;
}

static void web_oom_file_of_handler(void **state)
{
    (void)state;
    oom_at_each_allocation(answer_with_a_file);
}

static unsigned n_freed;

static void count_freed(void *data)
{
    (void)data;
    n_freed++;
}

static bool answer_with_an_owned_body(void)
{
    n_freed = 0;
    if (mk_file_cache_init(&site.web.files, &site_limits))
        return false;
    struct mk_exchange *x = site_get(&site, "/", "");
    bool ok = x && mk_response_set_body_owned(&x->response, MK_STR("owned"), count_freed, NULL) == 0;
    ok &= oom.n_failed == 0; /* an earlier failure has already produced another response */
    bool was_owned = x;
    if (x)
        mk_exchange_free(x);
    assert_int_equal(n_freed, was_owned);
    mk_file_cache_fini(&site.web.files);
    mk_arena_cache_fini(&site.blocks);
    return ok;
}

static void web_oom_owned_body(void **state)
{
    (void)state;
    oom_at_each_allocation(answer_with_an_owned_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(web_oom_file, setup, teardown),
        fixture_test(web_oom_ranges, setup, teardown),
        fixture_test(web_oom_redirects_and_errors, setup, teardown),
        fixture_test(web_oom_large_response_of_handler, setup, teardown),
        fixture_test(web_oom_changed_response, setup, teardown),
        fixture_test(web_oom_file_of_handler, setup, teardown),
        fixture_test(web_oom_owned_body, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
