/* SPDX-License-Identifier: Apache-2.0 */
/* monkey-duda-test, which `monkey test` runs: it loads a service into libmonkey, without processes or ports,
 * loads the tests, and runs them with the in-memory client. If the service or a test crashes, `monkey test`
 * reads the report from standard error, and continues with the next test.
 *
 *     monkey-duda-test SERVICE ROOT INCLUDE TESTS PREFIX FIRST
 *
 * SERVICE is a value of `Load`, ROOT a value of `DocumentRoot` and INCLUDE a configuration file; the latter two
 * may be empty. TESTS is a shared object with tests, PREFIX is prepended to their names, and FIRST is the index
 * of the first test. */
#include "dev/crash.h"
#include "tests.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FINE = 0, FAILED = 1, BROKEN = 2, WORDS = 7 };

static void on_log(void *ctx, enum mk_log_level level, mk_str text)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    (void)ctx;
    fprintf(stderr, "%s: %.*s\n", level < MK_LEN(names) ? names[level] : "?", MK_STR_ARG(text));
}

static int print_error(const char *problem)
{
    fprintf(stderr, "monkey test: %s\n", problem);
    return BROKEN;
}

static bool configure_server(struct mk_server *s, char **words)
{
    return mk_server_set(s, "PLUGINS", "Load", words[1]) == 0 &&
           mk_server_add_vhost(s, NULL, *words[2] ? words[2] : NULL) == 0 &&
           (!*words[3] || mk_server_load_config(s, words[3]) == 0) && mk_server_fd(s) >= 0;
}

static int load_and_run_tests(struct mk_server *s, char **words)
{
    if (!configure_server(s, words))
        return print_error(mk_server_error(s));
    if (!dlopen(words[4], RTLD_NOW | RTLD_LOCAL))
        return print_error(dlerror());
    if (tester_tests_count() == 0)
        return print_error("the file contains no DUDA_TEST()");
    return tester_tests_run(s, strtoul(words[6], NULL, 10), words[5]) ? FAILED : FINE;
}

/* Returns the folder of this program, which also contains the plugins. */
static const char *find_own_folder(char path[PATH_MAX])
{
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash)
        return NULL;
    *slash = '\0';
    return path;
}

int main(int argc, char **argv)
{
    char folder[PATH_MAX];
    const struct mk_server_options options = {.size = sizeof options,
                                              .on_log = on_log,
                                              .in_memory = true,
                                              .plugin_folder = find_own_folder(folder)};
    if (argc != WORDS)
        return print_error("this program is only run by `monkey test`");
    dev_crash_preload();
    (void)!dev_crash_install_handlers(); /* without handlers, a crash produces no report */
    struct mk_server *s = mk_server_new(&options);
    int code = load_and_run_tests(s, argv);
    dev_crash_ignore_exit();
    mk_server_free(s);
    return fflush(stdout) ? BROKEN : code;
}
