/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/prefetch.h"

#include "unit/connection/fixture.h"

static struct conn_fixture t;
static struct mk_open_file *file;
static unsigned n_read;

static void setup(void)
{
    static char content[10000];
    conn_setup(&t);
    site_add(&t.site, "f.bin", mk_str_of(content, sizeof content));
    n_read = 0;
    assert_int_equal(
        mk_file_cache_acquire(&t.site.web.files, &t.site.host.root, MK_STR("f.bin"), t.loop.now_ms, &file),
        0);
}

static void on_read(void *data)
{
    assert_ptr_equal(data, &t);
    n_read++;
}

static void prefetch_recently_written_file_is_cached(void **state)
{
    (void)state;
    assert_true(file->fd >= 0);
    assert_true(mk_prefetch_is_cached(&t.manager, file, 0, file->size));
    assert_true(file->warm_until_ms > t.loop.now_ms); /* the file is assumed to stay cached for a while */
    mk_open_file_release(file);
}

static void prefetch_calls_waiting_caller_once(void **state)
{
    (void)state;
    unsigned refs = file->refs;
    assert_non_null(mk_prefetch_start(&t.manager, file, 0, file->size, on_read, &t));
    assert_int_equal(file->refs, refs + 1); /* the file stays open while the thread reads it */
    assert_int_equal(t.counters.cold_reads, 1);
    assert_int_equal(n_read, 0);
    for (int i = 0; i < 500 && !n_read; i++)
        assert_int_equal(mk_loop_run_once(&t.loop, 10), 0);
    assert_int_equal(n_read, 1);
    assert_int_equal(file->refs, refs);
    conn_run_server(&t);
    assert_int_equal(n_read, 1);
    mk_open_file_release(file);
}

static void prefetch_detached_caller_is_not_called(void **state)
{
    (void)state;
    struct mk_prefetch *r = mk_prefetch_start(&t.manager, file, 0, file->size, on_read, &t);
    assert_non_null(r);
    mk_prefetch_detach(r);
    mk_file_cache_invalidate(file);
    for (int i = 0; i < 20; i++)
        assert_int_equal(mk_loop_run_once(&t.loop, 5), 0);
    assert_int_equal(n_read, 0);
    mk_open_file_release(file);
}

static void prefetch_shutdown_waits_for_thread(void **state)
{
    (void)state;
    assert_non_null(mk_prefetch_start(&t.manager, file, 0, file->size, on_read, &t));
    mk_offload_fini(&t.manager.helper);
    assert_int_equal(n_read, 1);
    assert_int_equal(mk_offload_init(&t.manager.helper, &t.loop), 0);
    mk_open_file_release(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(prefetch_recently_written_file_is_cached, setup),
        fixture_test(prefetch_calls_waiting_caller_once, setup),
        fixture_test(prefetch_detached_caller_is_not_called, setup),
        fixture_test(prefetch_shutdown_waits_for_thread, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
