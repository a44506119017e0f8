/* SPDX-License-Identifier: Apache-2.0 */
/* monkey-duda-test, which `monkey test` runs: it loads the tests, and runs each in a child process, which loads
 * the service into libmonkey, without listening on a port. If the service or a test crashes, `monkey test`
 * reads the report from standard error, and continues with the next test.
 *
 *     monkey-duda-test SERVICE ROOT INCLUDE TESTS PREFIX FIRST FOLDER PATTERN
 *
 * SERVICE is a value of `Load`, ROOT a value of `DocumentRoot` and INCLUDE a configuration file; the latter two
 * may be empty. TESTS is a shared object with tests, PREFIX is prepended to their names, FIRST is the index
 * of the first test, FOLDER is empty and private, and only tests that match PATTERN run. */
#include "dev/crash.h"
#include "server.h"
#include "tests.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 9 };

static int load_and_run_tests(char **words)
{
    const struct tester_selection selection = {
        .prefix = words[5], .first = strtoul(words[6], NULL, 10), .folder = words[7], .pattern = words[8]};
    if (!dlopen(words[4], RTLD_NOW | RTLD_LOCAL))
        return tester_print_error(dlerror());
    if (tester_tests_count() == 0)
        return tester_print_error("the file contains no DUDA_TEST()");
    return tester_tests_run(&selection);
}

int main(int argc, char **argv)
{
    if (argc != WORDS)
        return tester_print_error("this program is only run by `monkey test`");
    tester_server_set_service(&(struct tester_service){argv[1], argv[2], argv[3]});
    dev_crash_preload();
    int code = load_and_run_tests(argv);
    return fflush(stdout) ? TESTER_BROKEN : code;
}
