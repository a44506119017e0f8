/* SPDX-License-Identifier: Apache-2.0 */
/* A program sets its own heap once; the library uses it for every allocation, and frees everything. */
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/embed.h"

static atomic_long n_blocks, n_calls;

static void *resize(void *old, size_t size)
{
    void *p = realloc(old, size);
    assert_true(size > 0);
    atomic_fetch_add(&n_calls, 1);
    atomic_fetch_add(&n_blocks, !old && p);
    return p;
}

static void free_counted(void *p)
{
    atomic_fetch_sub(&n_blocks, 1);
    free(p);
}

static void heap_functions_of_the_program_are_used(void **state)
{
    (void)state;
    unsigned port;
    assert_int_equal(mk_mem_set_allocator(NULL, free_counted), -EINVAL);
    assert_int_equal(mk_mem_set_allocator(resize, free_counted), 0);
    struct mk_server *s = server_with("GET /", respond_hello, NULL, &port);
    assert_int_equal(mk_mem_set_allocator(resize, free_counted), -EBUSY);
    assert_int_equal(mk_server_start(s, 2), 0);
    assert_holds(fetch(port, "GET", "/"), "hello");
    mk_server_free(s);
    assert_true(atomic_load(&n_calls) > 10);
    assert_int_equal(atomic_load(&n_blocks), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(heap_functions_of_the_program_are_used)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
