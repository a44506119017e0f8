/* SPDX-License-Identifier: Apache-2.0 */
#include "web/filter.h"

#include "unit/site.h"
#include "unit/test.h"

enum { SAID = 256 };

static struct site site;
static char said[SAID]; /* the closed ones, in order */

static void say(char name)
{
    size_t len = strlen(said);
    assert_true(len + 1 < sizeof said);
    said[len] = name;
}

/* Doubles every byte, or does whatever is odd. */
struct filter {
    char name;
    char letter;    /* to put behind each byte */
    ssize_t answer; /* if not 0: what every pull returns */
    size_t step;    /* how much it asks for at once */
    ssize_t last;   /* the last result of a pull */
    unsigned n_pulls;
};

static ssize_t pull_filter(void *ctx, struct mk_filter_next *inner, char *room, size_t cap)
{
    struct filter *f = ctx;
    char piece[64];
    f->n_pulls++;
    if (f->answer)
        return f->answer;
    size_t n = mk_min(cap / 2, f->step ? f->step : sizeof piece);
    assert_true(n > 0);
    f->last = mk_filter_next_read(inner, piece, n);
    for (ssize_t i = 0; i < f->last; i++) {
        room[2 * i] = piece[i];
        room[2 * i + 1] = f->letter;
    }
    return f->last > 0 ? 2 * f->last : f->last;
}

static void close_filter(void *ctx)
{
    say(((struct filter *)ctx)->name);
}

static const struct mk_filter_ops filter_ops = {.pull = pull_filter, .close = close_filter};

/* A source of some bytes, then what `end` says. */
struct source {
    const char *text;
    size_t at;
    ssize_t end;
    unsigned n_pulls;
};

static ssize_t pull_source(void *ctx, char *room, size_t cap)
{
    struct source *s = ctx;
    s->n_pulls++;
    size_t n = mk_min(cap, strlen(s->text + s->at));
    if (n == 0)
        return s->end;
    memcpy(room, s->text + s->at, n);
    s->at += n;
    return (ssize_t)n;
}

static void close_source(void *ctx)
{
    (void)ctx;
    say('s');
}

static const struct mk_body_source_ops source_ops = {.pull = pull_source, .close = close_source};

static int start(void **state)
{
    (void)state;
    memset(said, 0, sizeof said);
    site_begin(&site);
    return 0;
}

static void add(struct mk_exchange *x, struct filter *f, int64_t length)
{
    assert_int_equal(mk_response_add_filter(&x->response, &filter_ops, f, length), 0);
}

static void a_filter_changes_text(void **state)
{
    (void)state;
    struct filter f = {.name = 'f', .letter = '.'};
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_nocopy(&x->response, MK_STR("abc")), 0);
    add(x, &f, 6);
    assert_int_equal(mk_response_length(&x->response), 6);
    assert_str(site_content(x), "a.b.c.");
    assert_string_equal(said, "");
    mk_exchange_free(x);
    assert_string_equal(said, "f");
}

static void later_filters_see_what_earlier_made(void **state)
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
    assert_string_equal(said, "gfs"); /* from the outside in, each once */
}

static void parts_move_with_their_cursor(void **state)
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

static void a_file_is_read_through(void **state)
{
    (void)state;
    struct mk_buf text = mk_buf_growing(10000);
    for (int i = 0; i < 5000; i++)
        mk_buf_add_char(&text, (char)('a' + i % 26));
    site_add(&site, "large.txt", mk_buf_str(&text));
    struct filter f = {.name = 'f', .letter = '.'};
    struct mk_exchange *x = site_answer(&site, "/large.txt", "");
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

static void the_end_is_asked_for_once(void **state)
{
    (void)state;
    struct filter f = {.name = 'f', .letter = '.'};
    struct source s = {.text = "a"};
    char room[8];
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_source(&x->response, &source_ops, &s, MK_LENGTH_UNKNOWN), 0);
    add(x, &f, MK_LENGTH_UNKNOWN);
    assert_int_equal(mk_response_body_read(&x->response.content, room, sizeof room), 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(mk_response_body_read(&x->response.content, room, sizeof room), 0);
    assert_int_equal(s.n_pulls, 2);
    mk_exchange_free(x);
}

static void errors_come_through_and_stay(void **state)
{
    (void)state;
    struct filter f = {.name = 'f', .letter = '.'};
    struct source s = {.text = "a", .end = -EAGAIN};
    char room[8];
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_source(&x->response, &source_ops, &s, MK_LENGTH_UNKNOWN), 0);
    add(x, &f, MK_LENGTH_UNKNOWN);
    assert_int_equal(mk_response_body_read(&x->response.content, room, sizeof room), 2);
    assert_int_equal(mk_response_body_read(&x->response.content, room, sizeof room), -EAGAIN);
    assert_int_equal(mk_response_body_read(&x->response.content, room, sizeof room), -EAGAIN);
    s.text = "ab";
    assert_int_equal(mk_response_body_read(&x->response.content, room, sizeof room), 2);
    s.end = -EPIPE;
    assert_int_equal(mk_response_body_read(&x->response.content, room, sizeof room), -EPIPE);
    unsigned n = s.n_pulls;
    s.end = 0;
    assert_int_equal(mk_response_body_read(&x->response.content, room, sizeof room), -EPIPE);
    assert_int_equal(s.n_pulls, n);
    mk_exchange_free(x);
    assert_string_equal(said, "fs");
}

static void the_inner_content_keeps_its_length(void **state)
{
    (void)state;
    char room[8];
    struct filter f = {.name = 'f', .letter = '.'};
    struct source s = {.text = "abc"};
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_source(&x->response, &source_ops, &s, 4), 0);
    add(x, &f, MK_LENGTH_UNKNOWN);
    assert_int_equal(mk_response_body_read(&x->response.content, room, sizeof room), 6);
    assert_int_equal(mk_response_body_read(&x->response.content, room, sizeof room),
                     -EIO); /* one is missing */
    mk_exchange_free(x);
    s = (struct source){.text = "abc"};
    x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_source(&x->response, &source_ops, &s, 2), 0);
    add(x, &f, MK_LENGTH_UNKNOWN);
    assert_str(site_content(x), "a.b."); /* more is not asked for */
    assert_int_equal(s.n_pulls, 1);
    mk_exchange_free(x);
}

static ssize_t pull_too_much(void *ctx, char *room, size_t cap)
{
    (void)ctx, (void)room;
    return (ssize_t)cap + 1;
}

static void a_source_that_says_too_much_is_not_believed(void **state)
{
    (void)state;
    static const struct mk_body_source_ops ops = {.pull = pull_too_much};
    char room[8];
    struct filter f = {.name = 'f', .letter = '.'};
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_source(&x->response, &ops, NULL, MK_LENGTH_UNKNOWN), 0);
    add(x, &f, MK_LENGTH_UNKNOWN);
    assert_int_equal(mk_response_body_read(&x->response.content, room, sizeof room), -EIO);
    mk_exchange_free(x);
}

static ssize_t pull_nothing(void *ctx, struct mk_filter_next *inner, char *room, size_t cap)
{
    (void)ctx, (void)cap;
    return mk_filter_next_read(inner, room, 0);
}

static void no_pull_without_room(void **state)
{
    (void)state;
    static const struct mk_filter_ops ops = {.pull = pull_nothing};
    char room[8];
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_nocopy(&x->response, MK_STR("abc")), 0);
    assert_int_equal(mk_response_add_filter(&x->response, &ops, NULL, MK_LENGTH_UNKNOWN), 0);
    assert_int_equal(mk_response_body_read(&x->response.content, room, sizeof room), -EINVAL);
    mk_exchange_free(x);
}

static void a_rejected_filter_is_closed(void **state)
{
    (void)state;
    struct filter f = {.name = 'f'};
    struct source s = {.text = "raw"};
    static const struct mk_filter_ops ops_without_close = {.pull = pull_filter};
    struct mk_exchange *x = site_get(&site, "/", "");
    struct mk_response *r = &x->response;
    assert_int_equal(mk_response_set_body_nocopy(r, MK_STR("abc")), 0);
    assert_int_equal(mk_response_add_filter(r, &filter_ops, &f, -2), -EINVAL);
    assert_string_equal(said, "f");
    assert_str(site_content(x), "abc");
    assert_int_equal(mk_response_set_raw_source(r, &source_ops, &s), 0);
    assert_int_equal(mk_response_add_filter(r, &filter_ops, &f, MK_LENGTH_UNKNOWN), -EINVAL);
    assert_string_equal(said, "ff");
    r->sealed = true;
    assert_int_equal(mk_response_add_filter(r, &filter_ops, &f, 5), -EALREADY);
    assert_int_equal(mk_response_add_filter(r, &ops_without_close, &f, 5), -EALREADY);
    assert_string_equal(said, "fff");
    mk_exchange_free(x);
    assert_string_equal(said, "fffs");
}

static void other_content_closes_all_of_it(void **state)
{
    (void)state;
    struct filter f = {.name = 'f'}, g = {.name = 'g'};
    struct source s = {.text = "ab"};
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_response_set_body_source(&x->response, &source_ops, &s, 2), 0);
    add(x, &f, MK_LENGTH_UNKNOWN);
    add(x, &g, MK_LENGTH_UNKNOWN);
    assert_int_equal(mk_response_set_body_nocopy(&x->response, MK_STR("other")), 0);
    assert_string_equal(said, "gfs");
    assert_str(site_content(x), "other");
    mk_exchange_free(x);
    assert_string_equal(said, "gfs");
}

/* ---- In the corridor ---- */

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

static void a_hook_filters_files(void **state)
{
    (void)state;
    add_hook();
    struct mk_exchange *x = site_answer(&site, "/f.txt", "");
    assert_str(site_content(x), "a.b.c.");
    assert_str(site_field(x, "Content-Encoding"), "dots");
    assert_null(site_field(x, "Accept-Ranges").p);
    assert_non_null(site_field(x, "ETag").p);
    mk_exchange_free(x);
    site.host.hooks.response.n = 0;
    x = site_answer(&site, "/f.txt", ""); /* the file's own fields are as they were */
    assert_str(site_field(x, "Accept-Ranges"), "bytes");
    assert_null(site_field(x, "Content-Encoding").p);
    assert_str(site_content(x), "abc");
    mk_exchange_free(x);
}

static void error_pages_are_content_too(void **state)
{
    (void)state;
    add_hook();
    struct mk_exchange *x = site_answer(&site, "/nothing", "");
    assert_int_equal(x->response.status, 404);
    assert_true(mk_str_starts(site_content(x), MK_STR("<.!.d.")));
    mk_exchange_free(x);
}

static void without_content_there_is_no_filter(void **state)
{
    (void)state;
    add_hook();
    struct mk_exchange *x = site_ask(&site, "HEAD /f.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(mk_dispatch_run(x));
    assert_null(x->response.content.source);
    assert_int_equal(mk_response_length(&x->response), 3);
    mk_exchange_free(x);
    x = site_answer(&site, "/f.txt", "If-None-Match: *\r\n");
    assert_int_equal(x->response.status, 304);
    assert_null(x->response.content.source);
    mk_exchange_free(x);
    assert_string_equal(said, "");
}

static void a_response_refused_later_loses_its_filters(void **state)
{
    (void)state;
    add_hook();
    struct mk_exchange *x = site_answer(&site, "/f.txt", "");
    hooked.name = 'H';
    mk_dispatch_error(x, 504);
    assert_string_equal(said, "H");
    hooked.name = 'i';
    assert_int_equal(x->response.status, 504);
    assert_null(site_field(x, "ETag").p);
    mk_exchange_free(x);
    assert_string_equal(said, "Hi");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_filter_changes_text, start, harness_stop),
        cmocka_unit_test_setup_teardown(later_filters_see_what_earlier_made, start, harness_stop),
        cmocka_unit_test_setup_teardown(parts_move_with_their_cursor, start, harness_stop),
        cmocka_unit_test_setup_teardown(a_file_is_read_through, start, harness_stop),
        cmocka_unit_test_setup_teardown(the_end_is_asked_for_once, start, harness_stop),
        cmocka_unit_test_setup_teardown(errors_come_through_and_stay, start, harness_stop),
        cmocka_unit_test_setup_teardown(the_inner_content_keeps_its_length, start, harness_stop),
        cmocka_unit_test_setup_teardown(a_source_that_says_too_much_is_not_believed, start, harness_stop),
        cmocka_unit_test_setup_teardown(no_pull_without_room, start, harness_stop),
        cmocka_unit_test_setup_teardown(a_rejected_filter_is_closed, start, harness_stop),
        cmocka_unit_test_setup_teardown(other_content_closes_all_of_it, start, harness_stop),
        cmocka_unit_test_setup_teardown(a_hook_filters_files, start, harness_stop),
        cmocka_unit_test_setup_teardown(error_pages_are_content_too, start, harness_stop),
        cmocka_unit_test_setup_teardown(without_content_there_is_no_filter, start, harness_stop),
        cmocka_unit_test_setup_teardown(a_response_refused_later_loses_its_filters, start, harness_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
