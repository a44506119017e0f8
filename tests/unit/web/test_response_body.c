/* SPDX-License-Identifier: Apache-2.0 */
#include "web/response.h"

#include "files/file_cache.h"
#include "unit/child.h"
#include "unit/fixtures.h"
#include "unit/folder.h"
#include "unit/test.h"

static struct mk_arena arena;
static struct mk_response_body content;

static void setup(void)
{
    arena_setup(&arena);
    mk_response_body_init(&content);
}

static void teardown(void)
{
    mk_response_body_fini(&content);
}

static void add(const char *text)
{
    assert_true(mk_response_body_add_text(&content, &arena, mk_str_from_c(text)));
}

/* Reads the rest of the body, `cap` bytes at a time. */
static void check_pulled(size_t cap, const char *expected)
{
    char buffer[256];
    struct mk_buf all = mk_buf_fixed(buffer, sizeof buffer);
    char piece[64];
    assert_true(cap <= sizeof piece);
    ssize_t n;
    while ((n = mk_response_body_read(&content, piece, cap)) > 0) {
        assert_true((size_t)n <= cap);
        mk_buf_add(&all, mk_str_of(piece, (size_t)n));
    }
    assert_int_equal(n, 0);
    assert_str(mk_buf_str(&all), expected);
}

static void response_body_empty(void **state)
{
    (void)state;
    assert_int_equal(content.length, 0);
    assert_null(mk_response_body_current_part(&content));
    check_pulled(8, "");
}

static void response_body_parts_are_read_in_order(void **state)
{
    (void)state;
    for (size_t cap = 1; cap < 16; cap++) {
        mk_response_body_init(&content);
        add("one");
        add("");
        add("two");
        add("three");
        add("");
        assert_int_equal(content.length, 11);
        check_pulled(cap, "onetwothree");
        assert_null(mk_response_body_current_part(&content));
        assert_int_equal(content.length, 11); /* the total length has not changed */
    }
}

static void response_body_parts_can_be_consumed(void **state)
{
    (void)state;
    add("");
    add("one");
    add("two");
    struct mk_response_body_part *p = mk_response_body_current_part(&content);
    assert_str(p->bytes, "one");
    mk_response_body_advance(&content, 2);
    assert_ptr_equal(mk_response_body_current_part(&content), p);
    assert_str(p->bytes, "e");
    mk_response_body_advance(&content, 1);
    assert_str(mk_response_body_current_part(&content)->bytes, "two");
    check_pulled(1, "two");
    add("more"); /* appended after the consumed part */
    check_pulled(8, "more");
}

static void advance_too_far(void *ctx)
{
    mk_response_body_advance(&content, *(uint64_t *)ctx);
}

static void response_body_advance_beyond_part_asserts(void **state)
{
    (void)state;
    uint64_t n = 4;
    add("one");
    add("two");
    (void)mk_response_body_current_part(&content);
    assert_aborts(advance_too_far, &n, "n <=");
    mk_response_body_init(&content);
    assert_aborts(advance_too_far, &n, "p &&");
}

/* ---- Files ---- */

static struct folder folder;
static struct mk_file_cache cache;
static struct mk_root root;
static struct mk_open_file *file;

static void open_file(size_t small)
{
    const struct mk_file_cache_limits limits = {.files = 4, .memory = 1000, .small = small};
    folder_init(&folder);
    folder_add(&folder, "f", MK_STR("0123456789"));
    root = (struct mk_root){.fd = folder.fd, .path = folder.path};
    assert_int_equal(mk_file_cache_init(&cache, &limits), 0);
    assert_int_equal(mk_file_cache_acquire(&cache, &root, MK_STR("f"), 0, &file), 0);
    assert_int_equal(file->content.p != NULL, small > 0);
}

static void close_file(void)
{
    mk_open_file_release(file);
    mk_file_cache_fini(&cache);
    folder_fini(&folder);
}

static void check_slices(size_t small)
{
    open_file(small);
    for (size_t cap = 1; cap < 12; cap++) {
        mk_response_body_init(&content);
        assert_null(content.origin);
        assert_true(mk_response_body_add_file(&content, &arena, file, 7, 3));
        add("<>");
        assert_true(mk_response_body_add_file(&content, &arena, file, 0, 10));
        assert_true(mk_response_body_add_file(&content, &arena, file, 5, 0));
        assert_true(mk_response_body_add_file(&content, &arena, file, 2, 1));
        assert_int_equal(content.length, 16);
        assert_ptr_equal(content.origin, file);
        check_pulled(cap, "789<>01234567892");
    }
    close_file();
}

static void response_body_slices_of_cached_file(void **state)
{
    (void)state;
    check_slices(100);
}

static void response_body_slices_of_file_on_disk(void **state)
{
    (void)state;
    check_slices(0);
}

static void response_body_file_on_disk_is_one_part(void **state)
{
    (void)state;
    open_file(0);
    assert_true(mk_response_body_add_file(&content, &arena, file, 2, 6));
    struct mk_response_body_part *p = mk_response_body_current_part(&content);
    assert_ptr_equal(p->file, file);
    assert_int_equal(p->offset, 2);
    assert_int_equal(p->len, 6);
    mk_response_body_advance(&content, 4);
    assert_int_equal(p->offset, 6);
    assert_int_equal(p->len, 2);
    check_pulled(8, "67");
    close_file();
}

static void response_body_shrunken_file_is_an_error(void **state)
{
    (void)state;
    char piece[16], buffer[PATH_MAX];
    open_file(0);
    assert_true(mk_response_body_add_file(&content, &arena, file, 0, 10));
    assert_int_equal(truncate(folder_path(&folder, "f", buffer), 4), 0);
    assert_int_equal(mk_response_body_read(&content, piece, sizeof piece), 4);
    assert_int_equal(mk_response_body_read(&content, piece, sizeof piece), -EIO);
    assert_int_equal(mk_response_body_read(&content, piece, sizeof piece), -EIO);
    close_file();
}

/* ---- Sources ---- */

struct source {
    ssize_t answer;
    unsigned n_pulls, n_closes;
};

static ssize_t pull(void *ctx, char *to, size_t cap)
{
    struct source *s = ctx;
    (void)cap;
    s->n_pulls++;
    if (s->answer > 0)
        memset(to, 's', (size_t)s->answer);
    return s->answer;
}

static void close_source(void *ctx)
{
    ((struct source *)ctx)->n_closes++;
}

static const struct mk_body_source_ops ops = {.read = pull, .close = close_source};
static const struct mk_body_source_ops ops_without_close = {.read = pull};

static void response_body_source_is_pulled_and_closed_once(void **state)
{
    (void)state;
    struct source s = {.answer = 3};
    char piece[8];
    mk_response_body_set_source(&content, &ops, &s, 10);
    assert_int_equal(content.length, 10);
    assert_int_equal(mk_response_body_read(&content, piece, sizeof piece), 3);
    assert_memory_equal(piece, "sss", 3);
    s.answer = -EAGAIN;
    assert_int_equal(mk_response_body_read(&content, piece, sizeof piece), -EAGAIN);
    s.answer = 0;
    assert_int_equal(mk_response_body_read(&content, piece, sizeof piece), 0);
    assert_int_equal(s.n_pulls, 3);
    assert_int_equal(s.n_closes, 0);
    mk_response_body_fini(&content);
    mk_response_body_fini(&content);
    assert_int_equal(s.n_closes, 1);
    assert_int_equal(content.length, 0);
}

static void response_body_source_replaces_body(void **state)
{
    (void)state;
    struct source first = {.answer = 1}, second = {.answer = 0}, third = {.answer = 0};
    add("text");
    mk_response_body_set_source(&content, &ops, &first, MK_RESPONSE_BODY_UNKNOWN);
    assert_null(mk_response_body_current_part(&content));
    assert_true(content.length == MK_RESPONSE_BODY_UNKNOWN);
    mk_response_body_set_source(&content, &ops, &second, 0);
    assert_int_equal(first.n_closes, 1);
    mk_response_body_set_source(&content, &ops_without_close, &third, 0);
    assert_int_equal(second.n_closes, 1);
    mk_response_body_fini(&content);
    assert_int_equal(third.n_closes, 0);
    assert_int_equal(first.n_closes, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(response_body_empty, setup, teardown),
        fixture_test(response_body_parts_are_read_in_order, setup, teardown),
        fixture_test(response_body_parts_can_be_consumed, setup, teardown),
        fixture_test(response_body_advance_beyond_part_asserts, setup, teardown),
        fixture_test(response_body_slices_of_cached_file, setup, teardown),
        fixture_test(response_body_slices_of_file_on_disk, setup, teardown),
        fixture_test(response_body_file_on_disk_is_one_part, setup, teardown),
        fixture_test(response_body_shrunken_file_is_an_error, setup, teardown),
        fixture_test(response_body_source_is_pulled_and_closed_once, setup, teardown),
        fixture_test(response_body_source_replaces_body, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
