/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the tables themselves: the help, default and bounds of every key are correct. */
#include "setup/keys.h"

#include <stdio.h>

#include "conf/print.h"
#include "conf/read.h"
#include "unit/fixtures.h"
#include "unit/test.h"

/* Large enough for the struct of any section. */
union settings {
    struct mk_server_settings server;
    struct mk_vhost_settings host;
    struct mk_location_settings location;
    struct mk_conf_pairs pairs;
};

static struct mk_arena arena;
static struct mk_conf_report report;
static struct mk_conf_tree tree;

static void setup(void)
{
    arena_setup(&arena);
    mk_conf_report_init(&report, &arena);
    memset(&tree, 0, sizeof tree);
}

static const struct mk_conf_table *table_of(unsigned section)
{
    assert_non_null(mk_keys_tables[section]);
    return mk_keys_tables[section];
}

static const struct mk_conf_section *read_section(const char *name, mk_str text)
{
    const struct mk_conf_io io = {.read = NULL};
    size_t errors = report.n_errors;
    memset(&tree, 0, sizeof tree);
    (void)!mk_conf_read_text(&tree, &arena, &io, MK_STR("t.conf"), text, &report);
    if (report.n_errors != errors)
        fail_msg("not to be read: %.*s", MK_STR_ARG(text));
    return mk_conf_tree_find(&tree, mk_str_from_c(name));
}

static void expect_no_problem(const char *what)
{
    if (report.n_errors == 0 && !mk_conf_report_out_of_memory(&report))
        return;
    fail_msg("%s: %.*s", what, MK_STR_ARG(report.first->text));
}

static void check_words(const char *where, const char *text)
{
    if (!text || !*text)
        fail_msg("%s has no help", where);
    size_t len = strlen(text);
    if (text[len - 1] != '.' || strstr(text, "  ") || strchr(text, '\n'))
        fail_msg("the help of %s is no sentence: %s", where, text);
}

static void keys_and_sections_have_help(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MK_SECTIONS; i++) {
        const struct mk_conf_table *t = table_of(i);
        check_words(t->section, t->help);
        if (t->entry) {
            assert_non_null(t->entry_syntax);
            check_words(t->section, t->entry_help);
        }
        for (size_t k = 0; k < t->n; k++)
            if (!t->keys[k].alias_of) /* the reference describes the key behind the alias */
                check_words(t->keys[k].name, t->keys[k].help);
    }
}

static void keys_are_unique(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MK_SECTIONS; i++) {
        const struct mk_conf_table *t = table_of(i);
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(t->section, table_of(j)->section);
        for (size_t k = 0; k < t->n; k++)
            for (size_t m = 0; m < k; m++)
                if (mk_str_eq_nocase(mk_str_from_c(t->keys[k].name), mk_str_from_c(t->keys[m].name)))
                    fail_msg("%s is there twice", t->keys[k].name);
    }
}

/* Writes `Key value` into the section and binds it. */
static void bind_key(const struct mk_conf_table *t, const char *key, const char *value, union settings *out)
{
    mk_str text = mk_arena_printf(&arena, "[%s]\n    %s %s\n", t->section, key, value);
    memset(out, 0, sizeof *out);
    (void)!mk_conf_bind_without_defaults(t, read_section(t->section, text), out, &arena, &report);
}

static void keys_defaults_are_valid_values(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MK_SECTIONS; i++) {
        const struct mk_conf_table *t = table_of(i);
        for (size_t k = 0; k < t->n; k++) {
            union settings by_default, written;
            if (!t->keys[k].default_value || t->keys[k].alias_of)
                continue;
            memset(&by_default, 0, sizeof by_default);
            (void)!mk_conf_bind(t, NULL, &by_default, &arena, &report);
            bind_key(t, t->keys[k].name, t->keys[k].default_value, &written);
            expect_no_problem(t->keys[k].name);
            const char *a = (const char *)&by_default + t->keys[k].offset;
            const char *b = (const char *)&written + t->keys[k].offset;
            bool is_plain = t->keys[k].type != MK_CONF_TEXT && t->keys[k].type != MK_CONF_WORDS;
            if (is_plain && memcmp(a, b, t->keys[k].size) != 0)
                fail_msg("the default of %s is not %s", t->keys[k].name, t->keys[k].default_value);
        }
    }
}

static void keys_bounds_are_enforced(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MK_SECTIONS; i++) {
        const struct mk_conf_table *t = table_of(i);
        for (size_t k = 0; k < t->n; k++) {
            const struct mk_conf_key *key = &t->keys[k];
            union settings out;
            char beyond[32];
            size_t errors = report.n_errors;
            if (key->type != MK_CONF_NUM || key->max == 0)
                continue;
            snprintf(beyond, sizeof beyond, "%llu", (unsigned long long)key->max);
            bind_key(t, key->name, beyond, &out);
            assert_int_equal(report.n_errors, errors);
            snprintf(beyond, sizeof beyond, "%llu", (unsigned long long)key->max + 1);
            bind_key(t, key->name, beyond, &out);
            if (report.n_errors != errors + 1)
                fail_msg("%s takes %s", key->name, beyond);
        }
    }
}

/* Binds the settings of an empty section below other empty sections. */
static void bind_nothing(enum mk_builtin_section section, union settings *out)
{
    struct mk_server_settings server = {.workers = 0};
    memset(out, 0, sizeof *out);
    (void)!mk_conf_bind(table_of(MK_SECTION_SERVER), NULL, &server, &arena, &report);
    if (section == MK_SECTION_SERVER)
        out->server = server;
    else if (section == MK_SECTION_HOST)
        out->host.site = server.site;
    else
        out->location.request = server.site.request;
}

static void keys_printed_settings_can_be_read(void **state)
{
    (void)state;
    static const enum mk_builtin_section with_keys[] = {MK_SECTION_SERVER, MK_SECTION_HOST,
                                                        MK_SECTION_LOCATION};
    for (size_t i = 0; i < MK_LEN(with_keys); i++) {
        const struct mk_conf_table *t = table_of(with_keys[i]);
        union settings first, second;
        struct mk_buf once = mk_buf_growing(1 << 16), again = mk_buf_growing(1 << 16);
        bind_nothing(with_keys[i], &first);
        bind_nothing(with_keys[i], &second);
        mk_conf_print_section(t, &first, &once);
        (void)!mk_conf_bind(t, read_section(t->section, mk_buf_str(&once)), &second, &arena, &report);
        expect_no_problem(t->section);
        assert_int_equal(report.n_warnings, 0);
        mk_conf_print_section(t, &second, &again);
        assert_true(mk_str_eq(mk_buf_str(&once), mk_buf_str(&again)));
        mk_buf_free(&once);
        mk_buf_free(&again);
    }
}

/* ---- Listen ---- */

static void expect_listen(const char *value, const char *address)
{
    union settings out;
    char buffer[MK_SOCKADDR_TEXT_MAX];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    bind_key(table_of(MK_SECTION_SERVER), "Listen", value, &out);
    expect_no_problem(value);
    assert_int_equal(out.server.listens.n, 1);
    mk_sockaddr_format(&out.server.listens.at[0].addr, &text);
    assert_str(mk_buf_str(&text), address);
}

static void keys_listen_addresses(void **state)
{
    (void)state;
    expect_listen("8080", "0.0.0.0:8080");
    expect_listen("127.0.0.1:80", "127.0.0.1:80");
    expect_listen("[::1]:80", "[::1]:80");
    expect_listen("unix:/run/x", "unix:/run/x");
    static const char *const bad[] = {"x",     "80 fast", "80 tls fast", "1.2.3.4.5:80",
                                      "99999", "80 h2",   "80 tls h2c",  "80 !http"};
    for (size_t i = 0; i < MK_LEN(bad); i++) {
        union settings out;
        size_t errors = report.n_errors;
        bind_key(table_of(MK_SECTION_SERVER), "Listen", bad[i], &out);
        if (report.n_errors != errors + 1)
            fail_msg("Listen %s is taken", bad[i]);
        assert_int_equal(report.last->at.line, 2);
    }
}

static void keys_listen_flags(void **state)
{
    (void)state;
    static const struct {
        const char *written;
        bool tls;
    } cases[] = {
        {"443", false}, {"443 tls", true}, {"[::]:443 SSL", true}, {"443 tls h2", true}, {"80 h2c", false}};
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        union settings out;
        bind_key(table_of(MK_SECTION_SERVER), "Listen", cases[i].written, &out);
        expect_no_problem(cases[i].written);
        assert_int_equal(out.server.listens.at[0].tls, cases[i].tls);
    }
}

/* ---- Custom values ---- */

/* Returns the value as printed, or NULL if it is rejected. */
static const char *printed_value(const char *key_name, const char *value)
{
    static char buffer[256];
    union settings out;
    const struct mk_conf_table *t = table_of(MK_SECTION_SERVER);
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer - 1);
    size_t errors = report.n_errors;
    bind_key(t, key_name, value, &out);
    const struct mk_conf_key *k = mk_conf_table_find(t, mk_str_from_c(key_name), false);
    if (report.n_errors != errors || !k->show((const char *)&out + k->offset, 0, &text))
        return NULL;
    assert_false(text.failed);
    buffer[text.len] = '\0';
    return buffer;
}

static void keys_custom_values_are_printed_as_read(void **state)
{
    static const struct {
        const char *key, *written, *printed_value;
    } cases[] = {
        {"HSTS", "180d", "180d"},
        {"HSTS", "off", "off"},
        {"HSTS", "0", "0"},
        {"HSTS", "60 PRELOAD includesubdomains", "1m includeSubDomains preload"},
        {"HSTS", "20000d", NULL},
        {"HSTS", "99999999999999999999999d", NULL},
        {"HSTS", "1d x", NULL},
        {"HSTS", "off preload", NULL},
        {"HSTS", "preload", NULL},
        {"RedirectToHTTPS", "yes", "on"},
        {"RedirectToHTTPS", "off", "off"},
        {"RedirectToHTTPS", "8443", "8443"},
        {"RedirectToHTTPS", "0", NULL},
        {"RedirectToHTTPS", "65536", NULL},
        {"RedirectToHTTPS", "on 80", NULL},
        {"Certificate", "/a.pem", "/a.pem"},
        {"Certificate", "/a.pem   /a.key", "/a.pem /a.key"},
        {"Certificate", "\"/a b.pem\" /a.key /a.ocsp", "\"/a b.pem\" /a.key /a.ocsp"},
        {"Certificate", "/a.pem /a.key /a.ocsp /more", NULL},
        {"Certificate", "\"\" /a.key", NULL},
        {"Certificate", "\"/a.pem", NULL},
        {"ClientAuthority", "/ca.pem", "/ca.pem"},
        {"ClientAuthority", "/ca.pem /more.pem", NULL},
    };
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        const char *is = printed_value(cases[i].key, cases[i].written);
        if (!cases[i].printed_value != !is || (is && strcmp(is, cases[i].printed_value) != 0))
            fail_msg("%s %s is shown as %s, not %s", cases[i].key, cases[i].written, is ? is : "nothing",
                     cases[i].printed_value ? cases[i].printed_value : "nothing");
    }
}

static void keys_listen_can_be_repeated(void **state)
{
    (void)state;
    struct mk_server_settings out;
    struct mk_buf text = mk_buf_growing(1 << 16);
    mk_buf_add(&text, MK_STR("[SERVER]\n"));
    for (int i = 1; i <= 50; i++)
        mk_buf_addf(&text, "    Listen 127.0.0.1:%d\n", i);
    memset(&out, 0, sizeof out);
    (void)!mk_conf_bind(table_of(MK_SECTION_SERVER), read_section("SERVER", mk_buf_str(&text)), &out, &arena,
                        &report);
    expect_no_problem("Listen");
    assert_int_equal(out.listens.n, 50);
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(mk_sockaddr_port(&out.listens.at[i].addr), i + 1);
        assert_int_equal(out.listens.at[i].at.line, i + 2);
    }
    mk_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(keys_and_sections_have_help, setup),
        fixture_test(keys_are_unique, setup),
        fixture_test(keys_defaults_are_valid_values, setup),
        fixture_test(keys_bounds_are_enforced, setup),
        fixture_test(keys_printed_settings_can_be_read, setup),
        fixture_test(keys_listen_addresses, setup),
        fixture_test(keys_listen_flags, setup),
        fixture_test(keys_custom_values_are_printed_as_read, setup),
        fixture_test(keys_listen_can_be_repeated, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
