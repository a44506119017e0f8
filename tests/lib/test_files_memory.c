/* SPDX-License-Identifier: Apache-2.0 */
/* mk_server_add_files() with each allocation failing in turn: it reports the failure and frees everything. */
#include <stdlib.h>

#include "lib/embed.h"

static size_t n_allocs, fail_at;

static void *resize(void *old, size_t size)
{
    return ++n_allocs == fail_at ? NULL : realloc(old, size);
}

static void allocation_failure_is_reported(void **state)
{
    (void)state;
    static const struct mk_memory_file file = {.path = "/index.html",
                                               .content = MK_STR_INIT("page"),
                                               .gzip = MK_STR_INIT("GZ"),
                                               .br = MK_STR_INIT("BR")};
    unsigned n_failed = 0;
    assert_int_equal(mk_mem_set_allocator(resize, free), 0);
    n_allocs = 1;
    for (size_t n = 1; n <= n_allocs + 1; n++) {
        fail_at = 0;
        struct mk_server *s = mk_server_new(NULL);
        assert_non_null(s);
        n_allocs = 0;
        fail_at = n;
        int e = mk_server_add_files(s, &file, 1, sizeof file);
        assert_true(e == 0 || e == -ENOMEM);
        n_failed += e == -ENOMEM;
        fail_at = 0;
        size_t needed = n_allocs;
        mk_server_free(s);
        n_allocs = needed;
    }
    assert_true(n_failed >= 8); /* a file, three variants with two allocations each, a route */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(allocation_failure_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
