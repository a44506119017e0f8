/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/config.h>
#include <sys/stat.h>

#include "os/capabilities.h"
#include "os/port_rules.h"
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
    g = (struct mk_config_generation){.server.sandbox = MK_SANDBOX_ON};
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
    mk_config_allow_path(&of_first, NULL, NULL, MK_STR("/a"));
    mk_config_allow_trust_store(&of_second, NULL, NULL);
    mk_config_allow_writing(&of_first, NULL, NULL, MK_STR("/a"));
    mk_config_allow_resolver(&of_first, NULL, NULL);
    expect(&first, "may read /a, write below /a, resolve names\n");
    expect(&second, "may read trust anchors\n");
}

static void sandbox_permissions_are_not_duplicated(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        mk_config_allow_path(&of_first, NULL, NULL, MK_STR("/a"));
        mk_config_allow_resolver(&of_first, NULL, NULL);
        mk_config_allow_path(&of_second, NULL, NULL, MK_STR("/a"));
    }
    expect(&first, "may read /a, resolve names\n");
    expect(&second, "may read /a\n");
}

static void sandbox_permissions_are_one_line(void **state)
{
    (void)state;
    mk_config_allow_path(&of_first, NULL, NULL, MK_STR("/a\n[HOST]"));
    expect(&first, "may read /a\\x0a[HOST]\n");
    expect(&second, "");
    g.server.sandbox = MK_SANDBOX_OFF;
    expect(&first, "");
}

/* ---- Reasons ---- */

static void expect_reason(const struct mk_sandbox_reason *reason, const char *text)
{
    char buffer[500];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    mk_sandbox_rules_describe_reason(reason, &out);
    assert_str(mk_buf_str(&out), text);
}

static void sandbox_reason_names_key_section_and_line(void **state)
{
    (void)state;
    struct mk_sandbox_reason reason = {.section = MK_STR("KV"), .key = MK_STR("Folder")};
    expect_reason(&(struct mk_sandbox_reason){0}, "every configuration");
    expect_reason(&reason, "Folder in [KV]");
    reason.at.file = MK_STR("/etc/m.conf");
    expect_reason(&reason, "Folder in [KV], /etc/m.conf");
    reason.at.line = 12;
    expect_reason(&reason, "Folder in [KV], /etc/m.conf:12");
    reason.key = MK_STR("");
    expect_reason(&reason, "[KV], /etc/m.conf:12");
}

static void sandbox_reason_is_the_route_or_the_plugin(void **state)
{
    (void)state;
    const struct mk_conf_entry load = {.key = MK_STR("Load"), .at = {.file = MK_STR("m.conf"), .line = 2}};
    const struct mk_conf_entry route = {.key = MK_STR("/a"), .at = {.file = MK_STR("m.conf"), .line = 9}};
    struct mk_loaded_plugin plugin = {.entry = &load};
    struct mk_config c = {.generation = &g, .plugin = &plugin};
    mk_config_allow_path(&c, NULL, NULL, MK_STR("/first"));
    mk_config_allow_path(&of_first, NULL, NULL, MK_STR("/embedded"));
    c.entry = &route;
    mk_config_allow_path(&c, NULL, NULL, MK_STR("/second"));
    mk_config_allow_path(&c, NULL, NULL, MK_STR("/first")); /* keeps its reason */
    expect_reason(&g.allowed->reason, "Load in [PLUGINS], m.conf:2");
    expect_reason(&g.allowed->next->reason, "[PLUGINS]");
    expect_reason(&g.allowed->next->next->reason, "/a in [ROUTES], m.conf:9");
    assert_null(g.allowed->next->next->next);
}

/* ---- Permissions of the server ---- */

static mk_err collect_rule(const struct mk_sandbox_rule *rule, void *ctx)
{
    struct mk_buf *out = ctx;
    mk_sandbox_rules_describe(rule, out);
    mk_buf_add(out, MK_STR(" for "));
    mk_sandbox_rules_describe_reason(&rule->reason, out);
    mk_buf_add_char(out, '\n');
    return 0;
}

static void sandbox_rules_begin_with_those_of_the_server(void **state)
{
    (void)state;
    char buffer[2000];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    struct mk_conf_section section = {.name = MK_STR("HOST"), .at = {.file = MK_STR("m.conf"), .line = 3}};
    struct mk_vhost_config site = {.section = &section};
    site.host.root = (struct mk_root){.fd = 7, .path = "/srv/www", .how.symlink = MK_SYMLINK_ON};
    g.sites = &site;
    g.wants_spool = true;
    g.server.spool_folder = MK_STR("/var/tmp");
    mk_config_allow_path(&of_first, NULL, NULL, MK_STR("/a"));
    assert_int_equal(mk_sandbox_rules_each(&g, collect_rule, &out), 0);
    assert_str(mk_buf_str(&out), "read /srv/www for DocumentRoot in [HOST], m.conf:3\n"
                                 "read / for FollowSymlinks in [HOST], m.conf:3\n"
                                 "spool below /var/tmp for SpoolFolder in [SERVER]\n"
                                 "read /dev/null for every configuration\n"
                                 "read /etc/localtime for every configuration\n"
                                 "read /a for [PLUGINS]\n");
}

/* ---- System calls ---- */

static void sandbox_system_calls_follow_from_ports(void **state)
{
    (void)state;
    struct mk_syscall_filter f = mk_sandbox_rules_syscall_filter(&g);
    assert_false(f.may_listen || f.may_fast_open || f.logs_denied);
    mk_config_allow_connect(&of_first, NULL, NULL, 80);
    mk_config_allow_path(&of_first, NULL, NULL, MK_STR("/a"));
    f = mk_sandbox_rules_syscall_filter(&g);
    assert_false(f.may_listen || f.may_fast_open);
    mk_config_allow_connect(&of_first, NULL, NULL, 0);
    mk_config_allow_bind(&of_first, NULL, NULL, 80);
    g.server.log_level = MK_LOG_DEBUG;
    f = mk_sandbox_rules_syscall_filter(&g);
    assert_true(f.may_listen && f.may_fast_open && f.logs_denied);
}

static void sandbox_capabilities_follow_from_the_user(void **state)
{
    (void)state;
    g.has_identity = true;
    g.identity.uid = 1000;
    assert_true(mk_sandbox_rules_capabilities(&g) == 0);
    g.identity.uid = 0;
    const uint64_t without = mk_sandbox_rules_capabilities(&g);
    assert_true(without == mk_capabilities_of_root_worker(false));
    mk_config_allow_bind(&of_first, NULL, NULL, 80);
    assert_true(mk_sandbox_rules_capabilities(&g) == mk_capabilities_of_root_worker(true));
}

static mk_err fail_rule(const struct mk_sandbox_rule *rule, void *ctx)
{
    unsigned *n = ctx;
    (void)rule;
    return ++*n == 2 ? -EIO : 0;
}

static void sandbox_rules_end_at_the_first_error(void **state)
{
    (void)state;
    unsigned n = 0;
    mk_config_allow_path(&of_first, NULL, NULL, MK_STR("/a"));
    assert_int_equal(mk_sandbox_rules_each(&g, fail_rule, &n), -EIO);
    assert_int_equal(n, 2);
}

/* ---- Ports ---- */

static void sandbox_ports_are_part_of_the_list(void **state)
{
    (void)state;
    mk_config_allow_connect(&of_first, NULL, NULL, 80);
    mk_config_allow_connect(&of_first, NULL, NULL, 80);
    mk_config_allow_bind(&of_first, NULL, NULL, 80);
    mk_config_allow_connect(&of_first, NULL, NULL, 0);
    mk_config_allow_bind(&of_first, NULL, NULL, 0);
    expect(&first, "may connect to port 80, bind to port 80, connect to all ports, bind to all ports\n");
}

static void sandbox_ports_are_restricted_unless_all_are_allowed(void **state)
{
    (void)state;
    assert_int_equal(mk_sandbox_rules_restricted_ports(&g), MK_PORT_CONNECT | MK_PORT_BIND);
    mk_config_allow_path(&of_first, NULL, NULL, MK_STR("/a")); /* its port is 0 */
    for (unsigned port = 1; port < 5000; port++)
        mk_config_allow_connect(&of_first, NULL, NULL, (uint16_t)port);
    assert_int_equal(mk_sandbox_rules_restricted_ports(&g), MK_PORT_CONNECT | MK_PORT_BIND);
    mk_config_allow_connect(&of_second, NULL, NULL, 0);
    assert_int_equal(mk_sandbox_rules_restricted_ports(&g), MK_PORT_BIND);
    mk_config_allow_bind(&of_first, NULL, NULL, 0);
    assert_int_equal(mk_sandbox_rules_restricted_ports(&g), 0);
}

/* ---- Watched files ---- */

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
    mk_config_allow_trust_store(&of_first, NULL, NULL);
    assert_null(g.watched);
    mk_config_allow_resolver(&of_first, NULL, NULL);
    assert_int_equal(is_watched("/etc/hosts"), is_plain("/etc/hosts"));
    assert_int_equal(is_watched("/etc/resolv.conf"), is_plain("/etc/resolv.conf"));
}

static void sandbox_off_watches_no_files(void **state)
{
    (void)state;
    g.server.sandbox = MK_SANDBOX_OFF;
    mk_config_allow_resolver(&of_first, NULL, NULL);
    assert_null(g.watched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(sandbox_permissions_are_per_plugin, setup),
        fixture_test(sandbox_permissions_are_not_duplicated, setup),
        fixture_test(sandbox_permissions_are_one_line, setup),
        fixture_test(sandbox_reason_names_key_section_and_line, setup),
        fixture_test(sandbox_reason_is_the_route_or_the_plugin, setup),
        fixture_test(sandbox_rules_begin_with_those_of_the_server, setup),
        fixture_test(sandbox_rules_end_at_the_first_error, setup),
        fixture_test(sandbox_ports_are_part_of_the_list, setup),
        fixture_test(sandbox_ports_are_restricted_unless_all_are_allowed, setup),
        fixture_test(sandbox_system_calls_follow_from_ports, setup),
        fixture_test(sandbox_capabilities_follow_from_the_user, setup),
        fixture_test(sandbox_resolver_files_are_watched, setup),
        fixture_test(sandbox_off_watches_no_files, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
