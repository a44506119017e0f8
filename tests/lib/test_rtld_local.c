/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the library with RTLD_LOCAL, as interpreters do. The modules that the library loads must find its
 * symbols. */
#include <dlfcn.h>
#include <monkey/server.h>

// clang-format off
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

static void *library;

static void find(const char *name, void *fn)
{
    *(void **)fn = dlsym(library, name);
    if (!*(void **)fn)
        fail_msg("there is no %s", name);
}

static void library_loaded_locally_loads_plugins_and_http2(void **state)
{
    struct mk_server *(*create)(const struct mk_server_options *);
    int (*set)(struct mk_server *, const char *, const char *, const char *);
    int (*start)(struct mk_server *, unsigned);
    const char *(*why)(const struct mk_server *);
    void (*end)(struct mk_server *);
    (void)state;
    library = dlopen(LIBMONKEY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    find("mk_server_new", &create);
    find("mk_server_set", &set);
    find("mk_server_start", &start);
    find("mk_server_error", &why);
    find("mk_server_free", &end);
    assert_null(dlsym(RTLD_DEFAULT, "mk_server_no_such_function"));
    struct mk_server *s = create(NULL);
    assert_int_equal(set(s, "PLUGINS", "Load", "headers"), 0);
    assert_int_equal(set(s, "PLUGINS", "Load", "dirlisting"), 0);
    assert_int_equal(set(s, "SERVER", "Listen", "127.0.0.1:0"), 0);
    if (HAS_HTTP2)
        assert_int_equal(set(s, "SERVER", "Listen", "127.0.0.2:0 http2"), 0);
    if (start(s, 1))
        fail_msg("%s", why(s));
    end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(library_loaded_locally_loads_plugins_and_http2)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
