/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a configuration when memory runs out: it is rejected, never loaded in part, and nothing leaks. */
#include <errno.h>

#include "os/regex.h"
#include "unit/oom.h"
#include "unit/setup/fixture.h"

/* Replaces PCRE2. */
static void drop(struct mk_regex *r)
{
    mk_mem_free(r);
}

extern mk_regex_compile mk_regex_pcre2_compile;

struct mk_regex *mk_regex_pcre2_compile(mk_str pattern, bool nocase, struct mk_regex_error *why)
{
    static const struct mk_regex_ops ops = {.free = drop};
    struct mk_regex *r = mk_mem_alloc(sizeof *r);
    (void)pattern, (void)nocase;
    *why = (struct mk_regex_error){.code = -ENOMEM};
    if (r)
        r->ops = &ops;
    return r;
}

static struct config_fixture c;
static const char *file;

static void setup(void)
{
    config_setup(&c);
    folder_add_folder(&c.folder, "sites");
    folder_add(
        &c.folder, "monkey.conf",
        MK_STR(
            "[SERVER]\n    Listen 127.0.0.1:8080\n    Listen 8081\n    AccessLog access.log\n    PidFile p\n"
            "@SET WHERE ../site\n@INCLUDE sites/*\n"));
    folder_add(&c.folder, "sites/one",
               MK_STR("[HOST]\n    ServerName one *.one ~^o\n    DocumentRoot ${WHERE}\n    Redirect /x\n"
                      "[ROUTES]\n    /r/* redirect 301 https://example.org\n    /s status 403\n    ~ ^/x "
                      "status 403\n    /* static\n"
                      "[ERROR_PAGES]\n    404 index.html\n[CACHE_CONTROL]\n    /* no-cache\n"));
    folder_add(&c.folder, "sites/two",
               MK_STR("[HOST]\n    ServerName two\n    DocumentRoot ${WHERE}\n    Fallback index.html\n"
                      "[LOCATION]\n    Path /a \"/b c\" *.d\n    AccessLog two.log\n    MaxBodySize 1\n"
                      "[HANDLERS]\n    Match /x.*y static\n    Match /z cgi\n"));
    folder_add(&c.folder, "monkey.mime", MK_STR("[MIMETYPES]\n    foo text/foo\n"));
    folder_add(&c.folder, "bad.conf", MK_STR("[SERVER]\n    Workerz 1\n[HOST]\n    DocumentRoot nothing\n"));
}

/* Checks that an accepted configuration is complete. */
static void check_whole(void)
{
    const struct mk_vhost *two = mk_vhosts_find(&c.g->hosts, MK_STR("two"));
    const struct mk_vhost *one = mk_vhosts_find(&c.g->hosts, MK_STR("x.one"));
    assert_int_equal(c.g->n_sites, 2);
    assert_int_equal(c.g->server.listens.n, 2);
    assert_true(c.g->server.pid_file.len > 0);
    assert_int_equal(one->n_routes, 5);
    assert_true(one->routes[3].regex && one->regexes && one->regexes[2] && c.g->hosts.regexes);
    assert_int_equal(two->n_routes, 3);
    assert_int_equal(one->n_error_pages + one->n_cache_rules, 2);
    assert_true(one->written_at.p && two->written_at.p);
    assert_int_equal(c.g->logs.n, 3);
    assert_int_equal(two->n_locations, 1);
    assert_int_equal(two->locations[0].n_paths, 3);
    assert_non_null(two->locations[0].limits.log);
    assert_true(two->locations[0].written_at.p);
}

static bool load(void)
{
    bool ok = config_load_file(&c, file);
    bool is_reported = c.report.n_errors > 0 || mk_conf_report_out_of_memory(&c.report);
    size_t at = oom.fail_at;
    oom.fail_at = 0;
    if (ok)
        check_whole();
    else
        assert_true(is_reported);
    config_unload(&c);
    oom.fail_at = at;
    return ok;
}

static void config_oom_is_complete_or_rejected(void **state)
{
    (void)state;
    file = "monkey.conf";
    oom_at_each_allocation(load);
}

static bool refuse(void)
{
    assert_false(config_load_file(&c, file));
    bool whole = c.report.n_errors == 2 && !mk_conf_report_out_of_memory(&c.report);
    struct mk_buf out = mk_buf_growing(1 << 16);
    mk_conf_report_print(&c.report, &out);
    whole &= !out.failed;
    mk_buf_free(&out);
    config_unload(&c);
    return whole && oom.n_failed == 0;
}

static void config_oom_mistakes_are_rejected(void **state)
{
    (void)state;
    file = "bad.conf";
    oom_at_each_allocation(refuse);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(config_oom_is_complete_or_rejected, setup),
        fixture_test(config_oom_mistakes_are_rejected, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
