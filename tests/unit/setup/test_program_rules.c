/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/config.h>
#include <stdio.h>

#include "setup/config.h"
#include "setup/program_rules.h"
#include "setup/sandbox_rules.h"
#include "unit/fixtures.h"
#include "unit/test.h"

static struct mk_config_generation g;
static struct mk_vhost_config site;
static struct mk_loaded_plugin plugin;
static struct mk_config config = {.generation = &g, .plugin = &plugin, .site = &site};
static const char *const no_words[] = {NULL};

static void setup(void)
{
    g = (struct mk_config_generation){.server.sandbox = MK_SANDBOX_ON};
    site = (struct mk_vhost_config){.host.root.fd = -1};
    arena_setup(&g.arena);
}

static void declare(const char *path, const char *const *arguments, const char *const *variables)
{
    mk_config_allow_program(
        &config, NULL, NULL,
        &(struct mk_program){.path = path, .arguments = arguments, .variables = variables});
}

static bool may_start(const char *path, const char *argument, const char *variable)
{
    char *argv[] = {(char *)(uintptr_t)path, (char *)(uintptr_t)argument, NULL};
    char *envp[] = {(char *)(uintptr_t)variable, NULL};
    return mk_program_rules.allow(&g, 0, argv, envp);
}

static void program_without_declaration_is_refused(void **state)
{
    (void)state;
    assert_false(mk_program_rules.need_spawner(&g, 0));
    assert_false(may_start("/bin/sh", NULL, NULL));
    declare("/bin/true", NULL, NULL);
    assert_true(mk_program_rules.need_spawner(&g, 1));
    assert_true(may_start("/bin/true", "any", "LD_PRELOAD=any"));
    assert_false(may_start("/bin/sh", NULL, NULL));
    assert_false(may_start("/bin/true/", NULL, NULL));
    assert_false(may_start("/bin/../bin/true", NULL, NULL));
    assert_false(may_start("bin/true", NULL, NULL));
}

static void program_arguments_are_compared(void **state)
{
    (void)state;
    static const char *const words[] = {"-a", NULL};
    declare("/bin/none", no_words, NULL);
    declare("/bin/one", words, NULL);
    assert_true(may_start("/bin/none", NULL, NULL));
    assert_false(may_start("/bin/none", "-a", NULL));
    assert_true(may_start("/bin/one", "-a", NULL));
    assert_false(may_start("/bin/one", "-ab", NULL));
    assert_false(may_start("/bin/one", NULL, NULL));
}

static void program_variables_are_compared(void **state)
{
    (void)state;
    static const char *const names[] = {"A", "PATH=/bin", NULL};
    declare("/bin/some", NULL, names);
    declare("/bin/none", NULL, no_words);
    assert_true(may_start("/bin/some", NULL, NULL));
    assert_true(may_start("/bin/some", NULL, "A=any"));
    assert_true(may_start("/bin/some", NULL, "PATH=/bin"));
    assert_false(may_start("/bin/some", NULL, "PATH=/bin:/tmp"));
    assert_false(may_start("/bin/some", NULL, "PATH=/tmp"));
    assert_false(may_start("/bin/some", NULL, "LD_PRELOAD=/tmp/a.so"));
    assert_false(may_start("/bin/some", NULL, "AB=any"));
    assert_false(may_start("/bin/some", NULL, "A"));
    assert_true(may_start("/bin/none", NULL, NULL));
    assert_false(may_start("/bin/none", NULL, "A=any"));
}

static void program_of_first_worker_is_refused_in_others(void **state)
{
    (void)state;
    char *argv[] = {(char[]){"/bin/true"}, NULL};
    mk_config_allow_program(&config, NULL, NULL,
                            &(struct mk_program){.path = "/bin/true", .first_worker_only = true});
    assert_true(mk_program_rules.need_spawner(&g, 0));
    assert_false(mk_program_rules.need_spawner(&g, 1));
    assert_true(mk_program_rules.allow(&g, 0, argv, argv + 1));
    assert_false(mk_program_rules.allow(&g, 1, argv, argv + 1));
}

static void program_folder_is_not_left(void **state)
{
    (void)state;
    declare("/srv/cgi/", NULL, NULL);
    assert_true(may_start("/srv/cgi/a", NULL, NULL));
    assert_true(may_start("/srv/cgi/a/b", NULL, NULL));
    assert_false(may_start("/srv/cgi/", NULL, NULL));
    assert_false(may_start("/srv/cgi", NULL, NULL));
    assert_false(may_start("/srv/cgi2/a", NULL, NULL));
    assert_false(may_start("/srv/cgi/../bin/sh", NULL, NULL));
    declare("/", NULL, NULL);
    assert_true(may_start("/bin/sh", NULL, NULL));
}

static void program_in_folders_of_host_is_allowed(void **state)
{
    (void)state;
    const struct mk_conf_table table = {.section = "HOST"};
    const struct mk_conf_section section = {.name = MK_STR("HOST"), .table = &table};
    site.section = &section;
    site.host.root = (struct mk_root){.fd = 0, .path = "/srv/www"};
    g.sites = &site;
    assert_false(may_start("/srv/www/a.cgi", NULL, NULL));
    mk_config_allow_scripts(&config, NULL);
    assert_true(mk_program_rules.need_spawner(&g, 3));
    assert_true(may_start("/srv/www/a.cgi", NULL, "A=b"));
    assert_false(may_start("/srv/wwx/a.cgi", NULL, NULL));
}

/* PERL5OPT, LD_PRELOAD and the like make any script run other code, and php-cgi, in the first line of a script, runs
 * SCRIPT_FILENAME. */
static void script_gets_only_permitted_variables(void **state)
{
    (void)state;
    static const char *const variables[] = {"HTTP_*", "LANG=C", "SCRIPT_*", "PATH_TRANSLATED", NULL};
    static const char *const more[] = {"MORE", "HTTP_PROXY=http://a/", "SCRIPT_*", NULL};
    const struct mk_conf_table table = {.section = "HOST"};
    const struct mk_conf_section section = {.name = MK_STR("HOST"), .table = &table};
    site.section = &section;
    site.host.root = (struct mk_root){.fd = 0, .path = "/srv/www"};
    g.sites = &site;
    mk_config_allow_scripts(&config, variables);
    static const char *const good[] = {"HTTP_HOST=a", "HTTP_PROXY_AUTHORIZATION=a", "LANG=C",
                                       "SCRIPT_NAME=/a.cgi", "PATH_TRANSLATED=/srv/www/a"};
    static const char *const bad[] = {"PERL5OPT=-Ma",
                                      "LD_PRELOAD=/tmp/a.so",
                                      "BASH_ENV=/tmp/a",
                                      "PYTHONPATH=/tmp",
                                      "LANG=a",
                                      "HTTP_PROXY=http://evil/",
                                      "MORE=a",
                                      "SCRIPT_FILENAME=/tmp/evil.php",
                                      "PATH_TRANSLATED=/tmp/evil.php"};
    char *argv[] = {(char[]){"/srv/www/a.cgi"}, (char[]){"word"}, NULL};
    char *envp[] = {(char[]){"SCRIPT_FILENAME=/srv/www/a.cgi"}, NULL, NULL};
    for (size_t i = 0; i < MK_LEN(good); i++) {
        envp[1] = (char *)(uintptr_t)good[i];
        assert_true(mk_program_rules.allow(&g, 0, argv, envp));
    }
    for (size_t i = 0; i < MK_LEN(bad); i++) {
        envp[1] = (char *)(uintptr_t)bad[i];
        assert_false(mk_program_rules.allow(&g, 0, argv, envp));
    }
    assert_false(mk_program_rules.allow(&g, 0, argv, envp + 2));
    mk_config_allow_scripts(&config, variables);
    mk_config_allow_scripts(&config, more);
    assert_true(site.scripts->next && !site.scripts->next->next);
    static const char *const others[] = {"MORE=a", "HTTP_PROXY=http://a/"};
    for (size_t i = 0; i < MK_LEN(others); i++) {
        envp[1] = (char *)(uintptr_t)others[i];
        assert_true(mk_program_rules.allow(&g, 0, argv, envp));
    }
    envp[1] = (char[]){"HTTP_PROXY=http://evil/"};
    assert_false(mk_program_rules.allow(&g, 0, argv, envp));
}

/* A compromised worker writes any message to its spawner. */
static void interpreter_starts_only_scripts_of_hosts(void **state)
{
    (void)state;
    static const char *const words[] = {"-T", NULL}, *const variables[] = {"HTTP_*", "LANG=a*", "SCRIPT_*",
                                                                           NULL};
    const struct mk_conf_table table = {.section = "HOST"};
    const struct mk_conf_section section = {.name = MK_STR("HOST"), .table = &table};
    site.section = &section;
    site.host.root = (struct mk_root){.fd = 0, .path = "/srv/www"};
    g.sites = &site;
    mk_config_allow_program(
        &config, NULL, NULL,
        &(struct mk_program){
            .path = "/bin/perl", .arguments = words, .variables = variables, .takes_script = true});
    char *argv[] = {(char[]){"/bin/perl"}, (char[]){"-T"}, (char[]){"/srv/www/a.pl"}, NULL, NULL};
    char *envp[] = {(char[]){"HTTP_HOST=a"}, (char[]){"LANG=a*"}, (char[]){"SCRIPT_FILENAME=/srv/www/a.pl"},
                    NULL};
    assert_false(mk_program_rules.allow(&g, 0, argv, envp));
    mk_config_allow_scripts(&config, NULL);
    assert_true(mk_program_rules.allow(&g, 0, argv, envp));
    static const char *const forged[] = {"-eexec",    "/tmp/a.pl", "/srv/www/../a.pl", "/srv/www", "a.pl",
                                         "/bin/perl", ""};
    for (size_t i = 0; i < MK_LEN(forged); i++) {
        char same[64];
        snprintf(same, sizeof same, "SCRIPT_FILENAME=%s", forged[i]);
        argv[2] = (char *)(uintptr_t)forged[i];
        envp[2] = same;
        assert_false(mk_program_rules.allow(&g, 0, argv, envp));
    }
    argv[2] = (char[]){"/srv/www/a.pl"};
    envp[2] = (char[]){"SCRIPT_FILENAME=/srv/www/a.pl"};
    argv[3] = (char[]){"-x"};
    assert_false(mk_program_rules.allow(&g, 0, argv, envp));
    argv[3] = NULL;
    argv[1] = (char[]){"-e"};
    assert_false(mk_program_rules.allow(&g, 0, argv, envp));
    argv[1] = (char[]){"-T"};
    static const char *const others[] = {"PERL5OPT=-Ma", "HTTP=a",        "LANG=ab",
                                         "LANG=a",       "LD_PRELOAD=/a", "HTTP"};
    for (size_t i = 0; i < MK_LEN(others); i++) {
        envp[1] = (char *)(uintptr_t)others[i];
        assert_false(mk_program_rules.allow(&g, 0, argv, envp));
    }
}

static bool may_interpret(const char *variable, const char *other)
{
    char *argv[] = {(char[]){"/bin/php-cgi"}, (char[]){"/srv/www/a.php"}, NULL};
    char *envp[] = {(char *)(uintptr_t)variable, (char *)(uintptr_t)other, NULL};
    return mk_program_rules.allow(&g, 0, argv, envp);
}

/* php-cgi ignores its argument if one of these variables is set. */
static void interpreter_gets_the_same_script_in_its_variables(void **state)
{
    (void)state;
    static const char *variables[] = {"SCRIPT_*", "PATH_TRANSLATED", "A", NULL, NULL, NULL};
    const struct mk_conf_table table = {.section = "HOST"};
    const struct mk_conf_section section = {.name = MK_STR("HOST"), .table = &table};
    site.section = &section;
    site.host.root = (struct mk_root){.fd = 0, .path = "/srv/www"};
    g.sites = &site;
    mk_config_allow_scripts(&config, NULL);
    mk_config_allow_program(
        &config, NULL, NULL,
        &(struct mk_program){
            .path = "/bin/php-cgi", .arguments = no_words, .variables = variables, .takes_script = true});
    static const char same[] = "SCRIPT_FILENAME=/srv/www/a.php";
    assert_true(may_interpret(same, NULL));
    assert_true(may_interpret("A=b", same));
    assert_false(may_interpret(NULL, NULL));
    assert_false(may_interpret("A=b", NULL));
    assert_false(may_interpret("SCRIPT_FILENAME=/tmp/evil.php", NULL));
    assert_false(may_interpret("SCRIPT_FILENAME=", NULL));
    assert_false(may_interpret("SCRIPT_FILENAME=/srv/www/b.php", NULL));
    assert_false(may_interpret(same, "SCRIPT_FILENAME=/tmp/evil.php"));
    assert_false(may_interpret("SCRIPT_FILENAME=/tmp/evil.php", same));
    assert_true(may_interpret(same, "PATH_TRANSLATED=/srv/www/more"));
    assert_true(may_interpret(same, "PATH_TRANSLATED=/srv/www/"));
    assert_false(may_interpret(same, "PATH_TRANSLATED=/tmp/evil.php"));
    assert_false(may_interpret(same, "PATH_TRANSLATED=/srv/www/../../tmp/evil.php"));
    assert_false(may_interpret("PATH_TRANSLATED=/srv/www/a.php", NULL));
    variables[3] = "SCRIPT_FILENAME=/set/by/SetEnv";
    variables[4] = "PATH_TRANSLATED=/set/too";
    assert_true(may_interpret("SCRIPT_FILENAME=/set/by/SetEnv", "PATH_TRANSLATED=/set/too"));
    assert_false(may_interpret("SCRIPT_FILENAME=/tmp/evil.php", "PATH_TRANSLATED=/set/too"));
}

/* ---- Texts ---- */

static void program_rules_are_described(void **state)
{
    (void)state;
    char buffer[500];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    declare("/bin/true", no_words, no_words);
    declare("/bin/true", no_words, no_words);
    declare("/srv/cgi/", NULL, NULL);
    declare("/", NULL, NULL);
    mk_sandbox_rules_print(&g, &plugin, "may ", &out);
    assert_str(mk_buf_str(&out), "may have started outside the sandbox: /bin/true, "
                                 "have started outside the sandbox: programs below /srv/cgi/, "
                                 "have started outside the sandbox: all programs\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(program_without_declaration_is_refused, setup, NULL),
        fixture_test(program_arguments_are_compared, setup, NULL),
        fixture_test(program_variables_are_compared, setup, NULL),
        fixture_test(program_of_first_worker_is_refused_in_others, setup, NULL),
        fixture_test(program_folder_is_not_left, setup, NULL),
        fixture_test(program_in_folders_of_host_is_allowed, setup, NULL),
        fixture_test(script_gets_only_permitted_variables, setup, NULL),
        fixture_test(interpreter_starts_only_scripts_of_hosts, setup, NULL),
        fixture_test(interpreter_gets_the_same_script_in_its_variables, setup, NULL),
        fixture_test(program_rules_are_described, setup, NULL),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
