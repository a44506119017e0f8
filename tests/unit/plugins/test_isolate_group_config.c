/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration that the processes of an isolated service read. */
#include "unit/test.h"

#include <sys/mman.h>
#include <unistd.h>

#include "group_config.h"

static void store(const struct isolate_group *g, int fd, char text[4096])
{
    assert_int_equal(isolate_group_config_write(g, "/empty", fd), 0);
    ssize_t n = pread(fd, text, 4095, 0);
    assert_true(n > 0);
    text[n] = '\0';
}

static void group_config_has_service_and_no_static_files(void **state)
{
    char text[4096];
    mk_str include[] = {MK_STR("/srv/a ${b}.conf")};
    struct isolate_settings s = {.workers = 3, .handler_ms = 1500, .sandbox = true, .include = {.n = 1}};
    struct isolate_mount mount = {.pattern = MK_STR("/shop/*")};
    struct isolate_group g = {.settings = &s,
                              .name = "shop",
                              .service = MK_STR("/srv/monkey-shop.so"),
                              .include = include,
                              .mounts = &mount};
    int fd = memfd_create("test", MFD_CLOEXEC);
    (void)state;
    store(&g, fd, text);
    assert_non_null(strstr(text, "    Workers 3\n    Sandbox on\n"));
    assert_non_null(strstr(text, "    HandlerTimeout 1500ms\n"));
    assert_non_null(strstr(text, "[PLUGINS]\n    Load isolate\n"));
    assert_non_null(strstr(text, "@INCLUDE /srv/a $${b}.conf\n[PLUGINS]\n    Load /srv/monkey-shop.so\n"));
    assert_non_null(strstr(text, "    DocumentRoot /empty\n[ROUTES]\n    /shop/* shop\n"));
    s = (struct isolate_settings){.workers = 1};
    g.mounts = NULL;
    store(&g, fd, text); /* the shorter text replaces all of the longer text */
    assert_non_null(strstr(text, "    Sandbox off\n"));
    assert_non_null(strstr(text, "    HandlerTimeout unlimited\n"));
    assert_string_equal(text + strlen(text) - 12, "    /* shop\n");
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(group_config_has_service_and_no_static_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
