/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/config.h>
#include <sys/stat.h>

#include "setup/config.h"
#include "setup/sandbox_rules.h"
#include "unit/fixtures.h"
#include "unit/test.h"

static struct mk_config_generation g;
static struct mk_loaded_plugin first, second;
static struct mk_config of_first = {.generation = &g, .plugin = &first},
                        of_second = {.generation = &g, .plugin = &second};

static void setup(void)
{
    g = (struct mk_config_generation){.server.sandbox = true};
    arena_setup(&g.arena);
}

static void expect(const struct mk_loaded_plugin *by, const char *line)
{
    char buffer[500];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    mk_sandbox_rules_print(&g, by, "may ", &out);
    assert_str(mk_buf_str(&out), line);
}

static void sandbox_permissions_are_per_plugin(void **state)
{
    (void)state;
    mk_config_allow_path(&of_first, MK_STR("/a"));
    mk_config_allow_trust_store(&of_second);
    mk_config_allow_writing(&of_first, MK_STR("/a"));
    mk_config_allow_resolver(&of_first);
    expect(&first, "may read /a, write below /a, resolve names\n");
    expect(&second, "may read trust anchors\n");
}

static void sandbox_permissions_are_not_duplicated(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        mk_config_allow_path(&of_first, MK_STR("/a"));
        mk_config_allow_resolver(&of_first);
        mk_config_allow_path(&of_second, MK_STR("/a"));
    }
    expect(&first, "may read /a, resolve names\n");
    expect(&second, "may read /a\n");
}

static void sandbox_permissions_are_one_line(void **state)
{
    (void)state;
    mk_config_allow_path(&of_first, MK_STR("/a\n[HOST]"));
    expect(&first, "may read /a\\x0a[HOST]\n");
    expect(&second, "");
    g.server.sandbox = false;
    expect(&first, "");
}

static bool is_watched(const char *path)
{
    const struct mk_file_watch *w = g.watched;
    while (w && strcmp(w->path, path) != 0)
        w = w->next;
    return w;
}

static bool is_plain(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Workers cannot open a new file with the same name, so the server must replace the workers. */
static void sandbox_resolver_files_are_watched(void **state)
{
    (void)state;
    mk_config_allow_trust_store(&of_first);
    assert_null(g.watched);
    mk_config_allow_resolver(&of_first);
    assert_int_equal(is_watched("/etc/hosts"), is_plain("/etc/hosts"));
    assert_int_equal(is_watched("/etc/resolv.conf"), is_plain("/etc/resolv.conf"));
}

static void sandbox_off_watches_no_files(void **state)
{
    (void)state;
    g.server.sandbox = false;
    mk_config_allow_resolver(&of_first);
    assert_null(g.watched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(sandbox_permissions_are_per_plugin, setup),
        fixture_test(sandbox_permissions_are_not_duplicated, setup),
        fixture_test(sandbox_permissions_are_one_line, setup),
        fixture_test(sandbox_resolver_files_are_watched, setup),
        fixture_test(sandbox_off_watches_no_files, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
