/* SPDX-License-Identifier: Apache-2.0 */
#include "server/master_housekeeping.h"

#include "base/clock.h"
#include "setup/certificates.h"
#include "setup/https_rules.h"
#include "unit/fixtures.h"
#include "unit/folder.h"
#include "unit/test.h"

enum { CHECK_MS = 2100, SETTLED_MS = 1100 }; /* slightly more than the intervals of the code under test */

static struct folder folder;
static struct mk_arena arena;
static struct mk_loop loop;
static struct mk_master_housekeeping housekeeping;
static struct mk_config_generation first, second;
static char path[PATH_MAX];
static unsigned n_notified;

static void on_change(struct mk_master_housekeeping *u)
{
    assert_ptr_equal(u, &housekeeping);
    n_notified++;
}

static void watch(struct mk_config_generation *g)
{
    *g = (struct mk_config_generation){0};
    assert_true(mk_file_watch_add(&g->watched, &arena, folder_path(&folder, "a.pem", path)));
}

static void setup(void)
{
    n_notified = 0;
    folder_setup(&folder);
    arena_setup(&arena);
    loop.now_ms = 1000;
    mk_timer_wheel_init(&loop.wheel, loop.now_ms);
    mk_master_housekeeping_init(&housekeeping, &loop, NULL, on_change);
    folder_add(&folder, "a.pem", MK_STR("one"));
    watch(&first);
    mk_master_housekeeping_set_config(&housekeeping, &first);
}

static void pass(uint32_t ms)
{
    loop.now_ms += ms;
    mk_timer_wheel_advance(&loop.wheel, loop.now_ms);
}

static void housekeeping_unchanged_files_are_not_reported(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++)
        pass(CHECK_MS);
    assert_int_equal(n_notified, 0);
}

static void housekeeping_settled_change_is_reported_once(void **state)
{
    (void)state;
    folder_add(&folder, "a.pem", MK_STR("three"));
    pass(CHECK_MS);
    assert_int_equal(n_notified, 0);
    folder_add(&folder, "a.pem", MK_STR("fourteen"));
    pass(SETTLED_MS);
    assert_int_equal(n_notified, 0);
    pass(SETTLED_MS);
    assert_int_equal(n_notified, 1);
    for (unsigned i = 0; i < 5; i++)
        pass(CHECK_MS);
    assert_int_equal(n_notified, 1);
}

/* Tools that renew certificates do so before they send SIGHUP. */
static void housekeeping_files_reloaded_before_settling_are_not_reported(void **state)
{
    (void)state;
    folder_add(&folder, "a.pem", MK_STR("three"));
    pass(CHECK_MS);
    watch(&second);
    mk_master_housekeeping_set_config(&housekeeping, &second);
    for (unsigned i = 0; i < 5; i++)
        pass(CHECK_MS);
    assert_int_equal(n_notified, 0);
}

/* ---- Certificates ---- */

enum { DAY_S = 24 * 3600, DAY_MS = DAY_S * 1000, MINUTE_S = 60 };

static char logged[4096];

static void on_log_line(struct mk_log *log, enum mk_log_level level, mk_str text)
{
    size_t len = strlen(logged);
    (void)log;
    snprintf(logged + len, sizeof logged - len, "%s: %.*s\n", mk_log_level_names[level], MK_STR_ARG(text));
}

static struct mk_log sink = {.level = MK_LOG_INFO, .write = on_log_line};
static const struct mk_tls_module module;

struct certificate {
    struct mk_vhost_config site;
    struct mk_shared_tls_context made;
    mk_str names[1];
};

/* Adds a virtual host `name` whose certificate expires in this many seconds; 0: no certificate. */
static void add_certificate(struct certificate *c, const char *name, int64_t left_s)
{
    *c = (struct certificate){.names = {mk_str_from_c(name)}};
    c->site.host.names = c->names;
    c->site.host.n_names = *name ? 1 : 0;
    c->site.host.written_at = MK_STR("sites/a.conf:3");
    c->made = (struct mk_shared_tls_context){
        .next = first.contexts, .site = &c->site, .expires = left_s ? mk_clock_unix() + left_s : 0};
    first.contexts = &c->made;
}

static void setup_tls(void)
{
    setup();
    logged[0] = '\0';
    housekeeping.log = &sink;
    first.tls = &module;
}

static void housekeeping_expiring_certificate_is_logged_daily(void **state)
{
    (void)state;
    struct certificate soon, late;
    add_certificate(&soon, "soon.example", 14LL * DAY_S - MINUTE_S);
    add_certificate(&late, "late.example", 14LL * DAY_S + MINUTE_S);
    mk_master_housekeeping_set_config(&housekeeping, &first);
    pass(DAY_MS - 1000);
    assert_string_equal(logged, ""); /* the load has already logged the warning */
    for (unsigned day = 0; day < 3; day++) {
        logged[0] = '\0';
        pass(day ? DAY_MS : 2000);
        char date[MK_HTTPS_RULES_DATE], line[256];
        mk_https_rules_format_date(soon.made.expires, date);
        snprintf(line, sizeof line,
                 "warn: the certificate of the host soon.example (sites/a.conf:3) expires on %s\n", date);
        assert_string_equal(logged, line);
    }
}

static void housekeeping_expired_certificate_is_an_error(void **state)
{
    (void)state;
    struct certificate old, none;
    add_certificate(&old, "", -MINUTE_S);
    add_certificate(&none, "none.example", 0);
    mk_master_housekeeping_set_config(&housekeeping, &first);
    pass(DAY_MS + 1000);
    char date[MK_HTTPS_RULES_DATE], line[256];
    mk_https_rules_format_date(old.made.expires, date);
    snprintf(line, sizeof line,
             "error: the certificate of the host without a name (sites/a.conf:3) expired on %s: clients "
             "reject it\n",
             date);
    assert_string_equal(logged, line);
}

static void housekeeping_replaced_configuration_is_not_logged(void **state)
{
    (void)state;
    struct certificate soon;
    add_certificate(&soon, "soon.example", DAY_S);
    mk_master_housekeeping_set_config(&housekeeping, &first);
    pass(DAY_MS - 1000);
    watch(&second);
    second.tls = &module;
    mk_master_housekeeping_set_config(&housekeeping, &second);
    pass(DAY_MS + 1000);
    second.tls = NULL;
    second.contexts = first.contexts;
    mk_master_housekeeping_set_config(&housekeeping, &second);
    pass(DAY_MS + 1000);
    assert_string_equal(logged, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(housekeeping_unchanged_files_are_not_reported, setup),
        fixture_test(housekeeping_settled_change_is_reported_once, setup),
        fixture_test(housekeeping_files_reloaded_before_settling_are_not_reported, setup),
        fixture_test(housekeeping_expiring_certificate_is_logged_daily, setup_tls),
        fixture_test(housekeeping_expired_certificate_is_an_error, setup_tls),
        fixture_test(housekeeping_replaced_configuration_is_not_logged, setup_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
