/* SPDX-License-Identifier: Apache-2.0 */
#include "web/filter.h"

#include "unit/site.h"
#include "unit/test.h"

enum { CLOSED_MAX = 256 };

static struct site site;
static char closed[CLOSED_MAX]; /* names of closed filters and sources, in order */

static void record_call(char name)
{
    size_t len = strlen(closed);
    assert_true(len + 1 < sizeof closed);
    closed[len] = name;
}

/* Inserts a letter after each byte, or misbehaves. */
struct filter {
    char name;
    char letter;    /* letter inserted after each byte */
    ssize_t answer; /* if not 0: result of every pull */
    size_t step;    /* number of bytes requested at once */
    ssize_t last;   /* last result of a pull */
    unsigned n_pulls;
};

static ssize_t pull_filter(void *ctx, struct mk_filter_next *next, char *buffer, size_t cap)
{
    struct filter *f = ctx;
    char piece[64];
    f->n_pulls++;
    if (f->answer)
        return f->answer;
    size_t n = mk_min(cap / 2, f->step ? f->step : sizeof piece);
    assert_true(n > 0);
    f->last = mk_filter_next_read(next, piece, n);
    for (ssize_t i = 0; i < f->last; i++) {
        buffer[2 * i] = piece[i];
        buffer[2 * i + 1] = f->letter;
    }
    return f->last > 0 ? 2 * f->last : f->last;
}

static void close_filter(void *ctx)
{
    record_call(((struct filter *)ctx)->name);
}

static const struct mk_filter_ops filter_ops = {.read = pull_filter, .close = close_filter};

/* A source of a few bytes, followed by the result `end`. */
struct source {
    const char *text;
    size_t at;
    ssize_t end;
    unsigned n_pulls;
};

static ssize_t pull_source(void *ctx, char *buffer, size_t cap)
{
    struct source *s = ctx;
    s->n_pulls++;
    size_t n = mk_min(cap, strlen(s->text + s->at));
    if (n == 0)
        return s->end;
    memcpy(buffer, s->text + s->at, n);
    s->at += n;
    return (ssize_t)n;
}

static void close_source(void *ctx)
{
    (void)ctx;
    record_call('s');
}

static const struct mk_body_source_ops source_ops = {.read = pull_source, .close = close_source};

static void setup(void)
{
    memset(closed, 0, sizeof closed);
    site_setup(&site);
}

static void add(struct mk_exchange *x, struct filter *f, int64_t length)
{
    assert_int_equal(mk_response_add_filter(&x->response, &filter_ops, f, length), 0);
}

static void filter_transforms_body(void **state)
{
    (void)state;
    struct filter f = {.name = 'f', .letter = '.'};
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_nocopy(&x->response, MK_STR("abc")), 0);
    add(x, &f, 6);
    assert_int_equal(mk_response_length(&x->response), 6);
    assert_str(site_content(x), "a.b.c.");
    assert_string_equal(closed, "");
    mk_exchange_free(x);
    assert_string_equal(closed, "f");
}

static void filter_chain_runs_in_order(void **state)
{
    (void)state;
    struct filter f = {.name = 'f', .letter = '1'}, g = {.name = 'g', .letter = '2'};
    struct source s = {.text = "ab"};
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_source(&x->response, &source_ops, &s, 2), 0);
    add(x, &f, MK_LENGTH_UNKNOWN);
    add(x, &g, MK_LENGTH_UNKNOWN);
    assert_int_equal(mk_response_length(&x->response), MK_LENGTH_UNKNOWN);
    assert_str(site_content(x), "a212b212");
    assert_true(mk_filter_unfiltered_body(&x->response.content)->source == &source_ops);
    mk_exchange_free(x);
    assert_string_equal(closed, "gfs"); /* from the outermost to the innermost, each once */
}

static void filter_reads_across_body_parts(void **state)
{
    (void)state;
    char large[3000];
    memset(large, 'l', sizeof large);
    site_add(&site, "f", mk_str_of(large, sizeof large));
    for (size_t n_parts = 0; n_parts < 4; n_parts++) {
        struct filter f = {.name = 'f', .letter = '.', .step = n_parts};
        struct mk_exchange *x = site_get(&site, "/", "");
        struct mk_response_body *c = &x->response.content;
        for (size_t i = 0; i < n_parts; i++)
            assert_true(mk_response_body_add_text(c, &x->arena, MK_STR("xy")));
        if (n_parts) {
            (void)mk_response_body_current_part(c);
            mk_response_body_advance(c, 1);
        }
        c->length -= n_parts > 0;
        add(x, &f, MK_LENGTH_UNKNOWN);
        static const char *const expected[] = {"", "y.", "y.x.y.", "y.x.y.x.y."};
        assert_str(site_content(x), expected[n_parts]);
        mk_exchange_free(x);
    }
}

static void filter_reads_whole_file(void **state)
{
    (void)state;
    struct mk_buf text = mk_buf_growing(10000);
    for (int i = 0; i < 5000; i++)
        mk_buf_add_char(&text, (char)('a' + i % 26));
    site_add(&site, "large.txt", mk_buf_str(&text));
    struct filter f = {.name = 'f', .letter = '.'};
    struct mk_exchange *x = site_run_get(&site, "/large.txt", "");
    assert_int_equal(x->response.status, 200);
    add(x, &f, MK_LENGTH_UNKNOWN);
    assert_non_null(mk_response_body_current_part(mk_filter_unfiltered_body(&x->response.content))->file);
    mk_str content = site_content(x);
    assert_int_equal(content.len, 10000);
    for (size_t i = 0; i < text.len; i++)
        assert_true(content.p[2 * i] == text.p[i] && content.p[2 * i + 1] == '.');
    mk_exchange_free(x);
    mk_buf_free(&text);
}

static void filter_end_is_pulled_once(void **state)
{
    (void)state;
    struct filter f = {.name = 'f', .letter = '.'};
    struct source s = {.text = "a"};
    char buffer[8];
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_source(&x->response, &source_ops, &s, MK_LENGTH_UNKNOWN), 0);
    add(x, &f, MK_LENGTH_UNKNOWN);
    assert_int_equal(mk_response_body_read(&x->response.content, buffer, sizeof buffer), 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(mk_response_body_read(&x->response.content, buffer, sizeof buffer), 0);
    assert_int_equal(s.n_pulls, 2);
    mk_exchange_free(x);
}

static void filter_source_error_is_permanent(void **state)
{
    (void)state;
    struct filter f = {.name = 'f', .letter = '.'};
    struct source s = {.text = "a", .end = -EAGAIN};
    char buffer[8];
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_source(&x->response, &source_ops, &s, MK_LENGTH_UNKNOWN), 0);
    add(x, &f, MK_LENGTH_UNKNOWN);
    assert_int_equal(mk_response_body_read(&x->response.content, buffer, sizeof buffer), 2);
    assert_int_equal(mk_response_body_read(&x->response.content, buffer, sizeof buffer), -EAGAIN);
    assert_int_equal(mk_response_body_read(&x->response.content, buffer, sizeof buffer), -EAGAIN);
    s.text = "ab";
    assert_int_equal(mk_response_body_read(&x->response.content, buffer, sizeof buffer), 2);
    s.end = -EPIPE;
    assert_int_equal(mk_response_body_read(&x->response.content, buffer, sizeof buffer), -EPIPE);
    unsigned n = s.n_pulls;
    s.end = 0;
    assert_int_equal(mk_response_body_read(&x->response.content, buffer, sizeof buffer), -EPIPE);
    assert_int_equal(s.n_pulls, n);
    mk_exchange_free(x);
    assert_string_equal(closed, "fs");
}

static void filter_inner_body_length_is_enforced(void **state)
{
    (void)state;
    char buffer[8];
    struct filter f = {.name = 'f', .letter = '.'};
    struct source s = {.text = "abc"};
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_source(&x->response, &source_ops, &s, 4), 0);
    add(x, &f, MK_LENGTH_UNKNOWN);
    assert_int_equal(mk_response_body_read(&x->response.content, buffer, sizeof buffer), 6);
    assert_int_equal(mk_response_body_read(&x->response.content, buffer, sizeof buffer),
                     -EIO); /* the source lacks one byte */
    mk_exchange_free(x);
    s = (struct source){.text = "abc"};
    x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_source(&x->response, &source_ops, &s, 2), 0);
    add(x, &f, MK_LENGTH_UNKNOWN);
    assert_str(site_content(x), "a.b."); /* the filter requests no more */
    assert_int_equal(s.n_pulls, 1);
    mk_exchange_free(x);
}

static ssize_t pull_too_much(void *ctx, char *buffer, size_t cap)
{
    (void)ctx, (void)buffer;
    return (ssize_t)cap + 1;
}

static void filter_source_overrunning_buffer_is_an_error(void **state)
{
    (void)state;
    static const struct mk_body_source_ops ops = {.read = pull_too_much};
    char buffer[8];
    struct filter f = {.name = 'f', .letter = '.'};
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_source(&x->response, &ops, NULL, MK_LENGTH_UNKNOWN), 0);
    add(x, &f, MK_LENGTH_UNKNOWN);
    assert_int_equal(mk_response_body_read(&x->response.content, buffer, sizeof buffer), -EIO);
    mk_exchange_free(x);
}

static ssize_t pull_nothing(void *ctx, struct mk_filter_next *next, char *buffer, size_t cap)
{
    (void)ctx, (void)cap;
    return mk_filter_next_read(next, buffer, 0);
}

static void filter_pull_with_empty_buffer_is_invalid(void **state)
{
    (void)state;
    static const struct mk_filter_ops ops = {.read = pull_nothing};
    char buffer[8];
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_nocopy(&x->response, MK_STR("abc")), 0);
    assert_int_equal(mk_response_add_filter(&x->response, &ops, NULL, MK_LENGTH_UNKNOWN), 0);
    assert_int_equal(mk_response_body_read(&x->response.content, buffer, sizeof buffer), -EINVAL);
    mk_exchange_free(x);
}

static void filter_rejected_is_closed(void **state)
{
    (void)state;
    struct filter f = {.name = 'f'};
    struct source s = {.text = "raw"};
    static const struct mk_filter_ops ops_without_close = {.read = pull_filter};
    struct mk_exchange *x = site_get(&site, "/", "");
    struct mk_response *r = &x->response;
    assert_int_equal(mk_response_set_body_nocopy(r, MK_STR("abc")), 0);
    assert_int_equal(mk_response_add_filter(r, &filter_ops, &f, -2), -EINVAL);
    assert_string_equal(closed, "f");
    assert_str(site_content(x), "abc");
    assert_int_equal(mk_response_set_raw_source(r, &source_ops, &s), 0);
    assert_int_equal(mk_response_add_filter(r, &filter_ops, &f, MK_LENGTH_UNKNOWN), -EINVAL);
    assert_string_equal(closed, "ff");
    r->sealed = true;
    assert_int_equal(mk_response_add_filter(r, &filter_ops, &f, 5), -EALREADY);
    assert_int_equal(mk_response_add_filter(r, &ops_without_close, &f, 5), -EALREADY);
    assert_string_equal(closed, "fff");
    mk_exchange_free(x);
    assert_string_equal(closed, "fffs");
}

static void filter_new_body_closes_filters(void **state)
{
    (void)state;
    struct filter f = {.name = 'f'}, g = {.name = 'g'};
    struct source s = {.text = "ab"};
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_source(&x->response, &source_ops, &s, 2), 0);
    add(x, &f, MK_LENGTH_UNKNOWN);
    add(x, &g, MK_LENGTH_UNKNOWN);
    assert_int_equal(mk_response_set_body_nocopy(&x->response, MK_STR("other")), 0);
    assert_string_equal(closed, "gfs");
    assert_str(site_content(x), "other");
    mk_exchange_free(x);
    assert_string_equal(closed, "gfs");
}

/* ---- In the dispatcher ---- */

static struct filter hooked;

static void on_response(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    if (!mk_response_will_send_body(request, response))
        return;
    assert_int_equal(mk_response_add_filter(response, &filter_ops, &hooked, MK_LENGTH_UNKNOWN), 0);
    assert_int_equal(mk_response_set_header(response, MK_STR("Content-Encoding"), MK_STR("dots")), 0);
    assert_int_equal(mk_response_remove_header(response, MK_STR("Accept-Ranges")), 0);
}

static void add_hook(void)
{
    static const struct mk_plugin plugin = {.name = "filter", .on_response = on_response};
    static const struct mk_hook hook = {.plugin = &plugin};
    hooked = (struct filter){.name = 'h', .letter = '.'};
    site.host.hooks.response = (struct mk_hook_list){.at = &hook, .n = 1};
    site_add(&site, "f.txt", MK_STR("abc"));
}

static void filter_hook_transforms_files(void **state)
{
    (void)state;
    add_hook();
    struct mk_exchange *x = site_run_get(&site, "/f.txt", "");
    assert_str(site_content(x), "a.b.c.");
    assert_str(site_field(x, "Content-Encoding"), "dots");
    assert_null(site_field(x, "Accept-Ranges").p);
    assert_non_null(site_field(x, "ETag").p);
    mk_exchange_free(x);
    site.host.hooks.response.n = 0;
    x = site_run_get(&site, "/f.txt", ""); /* the cached headers of the file are unchanged */
    assert_str(site_field(x, "Accept-Ranges"), "bytes");
    assert_null(site_field(x, "Content-Encoding").p);
    assert_str(site_content(x), "abc");
    mk_exchange_free(x);
}

static void filter_hook_transforms_error_pages(void **state)
{
    (void)state;
    add_hook();
    struct mk_exchange *x = site_run_get(&site, "/nothing", "");
    assert_int_equal(x->response.status, 404);
    assert_true(mk_str_starts(site_content(x), MK_STR("<.!.d.")));
    mk_exchange_free(x);
}

static void filter_hook_without_body_adds_no_filter(void **state)
{
    (void)state;
    add_hook();
    struct mk_exchange *x = site_request(&site, "HEAD /f.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(mk_dispatch_run(x));
    assert_null(x->response.content.source);
    assert_int_equal(mk_response_length(&x->response), 3);
    mk_exchange_free(x);
    x = site_run_get(&site, "/f.txt", "If-None-Match: *\r\n");
    assert_int_equal(x->response.status, 304);
    assert_null(x->response.content.source);
    mk_exchange_free(x);
    assert_string_equal(closed, "");
}

static void filter_is_removed_when_response_is_rejected(void **state)
{
    (void)state;
    add_hook();
    struct mk_exchange *x = site_run_get(&site, "/f.txt", "");
    hooked.name = 'H';
    mk_dispatch_error(x, 504);
    assert_string_equal(closed, "H");
    hooked.name = 'i';
    assert_int_equal(x->response.status, 504);
    assert_null(site_field(x, "ETag").p);
    mk_exchange_free(x);
    assert_string_equal(closed, "Hi");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(filter_transforms_body, setup),
        fixture_test(filter_chain_runs_in_order, setup),
        fixture_test(filter_reads_across_body_parts, setup),
        fixture_test(filter_reads_whole_file, setup),
        fixture_test(filter_end_is_pulled_once, setup),
        fixture_test(filter_source_error_is_permanent, setup),
        fixture_test(filter_inner_body_length_is_enforced, setup),
        fixture_test(filter_source_overrunning_buffer_is_an_error, setup),
        fixture_test(filter_pull_with_empty_buffer_is_invalid, setup),
        fixture_test(filter_rejected_is_closed, setup),
        fixture_test(filter_new_body_closes_filters, setup),
        fixture_test(filter_hook_transforms_files, setup),
        fixture_test(filter_hook_transforms_error_pages, setup),
        fixture_test(filter_hook_without_body_adds_no_filter, setup),
        fixture_test(filter_is_removed_when_response_is_rejected, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
