/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "order.h"
#include "servers.h"
#include "tester.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <monkey/mem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] = "usage: monkey test [-i FILE] [FOLDER|NAME_test.c]...\n";
static const char help[] = "Runs the tests of services. NAME_test.c holds those of NAME.c: see duda/test.h. "
                           "Without an argument: all of this "
                           "folder.\n"
                           "\n"
                           "  -i, --include FILE  more of the configuration of the service\n"
                           "  -h, --help          this text\n"
                           "\n"
                           "The service runs in a server on a private unix socket. No port is opened.\n";

static const mk_str ending = MK_STR_INIT("_test.c");

/* What one file of tests needs. */
struct job {
    const struct dev_places *places;
    struct dev_units units;
    struct dev_servers servers;
    struct dev_compiled tests;
    char service[PATH_MAX], socket[PATH_MAX], name[DEV_NAME_MAX];
};

/* ---- The tests, in a process of their own: they may crash ---- */

/* Objects of tests call functions of this one, which was loaded for itself alone. */
static bool offer_own_functions(void)
{
    Dl_info info;
    return dladdr(&ending, &info) && dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

static int run_tests(const struct job *job)
{
    (void)!offer_own_functions(); /* a program that has them built in offers them anyway */
    if (!dlopen(job->tests.object, RTLD_NOW | RTLD_LOCAL))
        return dev_order_complain(DEV_FAILED, "test", NULL, dlerror());
    if (dev_tester_count() == 0)
        return dev_order_complain(DEV_FAILED, "test", job->name, "there is no DUDA_TEST() in its tests");
    return dev_tester_run(job->socket, job->name) ? DEV_FAILED : DEV_FINE;
}

static int run_tests_aside(const struct job *job)
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(run_tests(job) | (fflush(NULL) ? DEV_FAILED : 0));
    if (pid < 0)
        return dev_order_complain(DEV_FAILED, "test", NULL, strerror(errno));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    printf("not ok %s: the tests crashed, %s\n", job->name, strsignal(WTERMSIG(status)));
    return DEV_FAILED;
}

/* ---- The service ---- */

static bool compile_tests(struct job *job, const char *path)
{
    struct dev_source source;
    if (!dev_source_read(&source, path))
        return dev_order_complain(false, "test", path, strerror(errno));
    const struct dev_compile how = {.places = job->places, .kind = DEV_COMPILE_TEST};
    dev_compile(&how, &source, &job->tests);
    dev_order_write(stderr, mk_buf_str(&job->tests.said));
    dev_source_free(&source);
    return job->tests.ok;
}

static int serve(struct job *job, const char *extra)
{
    struct mk_buf why = mk_buf_growing(256 * 1024);
    int code = DEV_FAILED;
    (void)dev_units_update(&job->units);
    if (dev_units_are_fine(&job->units)) {
        if (dev_servers_swap(&job->servers, &job->units, extra, &why) &&
            dev_places_print(job->socket, "%s/back", job->servers.folder))
            code = run_tests_aside(job);
        else
            dev_order_write(stderr, mk_buf_str(&why));
        dev_servers_hear(&job->servers);
    }
    mk_buf_free(&why);
    return code;
}

static bool find_service(struct job *job, const char *path)
{
    mk_str all = mk_str_from_c(path);
    if (!mk_str_ends(all, ending))
        return dev_order_complain(false, "test", path, "the name of a file of tests ends with _test.c");
    mk_str base = mk_str_first(all, all.len - ending.len);
    mk_str leaf = mk_str_skip(base, mk_str_find_last(base, '/') + 1);
    snprintf(job->name, sizeof job->name, "%.*s", MK_STR_ARG(mk_str_first(leaf, sizeof job->name - 1)));
    return dev_places_print(job->service, "%.*s.c", MK_STR_ARG(base));
}

static int test_file(const struct dev_places *places, const char *path, const char *extra)
{
    struct job *job = mk_mem_zalloc(1, sizeof *job);
    int code = DEV_FAILED;
    if (!job)
        return code;
    job->places = places;
    if (find_service(job, path) && dev_units_init(&job->units, places, job->service)) {
        if (compile_tests(job, path) && dev_servers_init(&job->servers, places))
            code = serve(job, extra);
        dev_servers_stop(&job->servers);
        dev_units_free(&job->units);
        dev_compiled_free(&job->tests);
    }
    mk_mem_free(job);
    return code;
}

static int test_folder(const struct dev_places *places, const char *folder, const char *extra)
{
    char pattern[PATH_MAX];
    glob_t found;
    int code = DEV_FINE;
    if (!dev_places_print(pattern, "%s/*_test.c", folder) || glob(pattern, 0, NULL, &found) != 0)
        return dev_order_complain(DEV_FAILED, "test", folder,
                                  "there is no file whose name ends with _test.c");
    for (size_t i = 0; i < found.gl_pathc; i++)
        code |= test_file(places, found.gl_pathv[i], extra);
    globfree(&found);
    return code;
}

static int run(int argc, char **argv)
{
    const char *extra = NULL;
    const struct dev_option options[] = {{'i', "include", &extra, NULL}};
    struct dev_order order = {
        .usage = usage, .help = help, .options = options, .n_options = 1, .words_max = 1024};
    struct dev_places places;
    char path[PATH_MAX];
    struct stat st;
    int code;
    if (!dev_order_read(&order, argc, argv, &code))
        return code;
    if (extra && !realpath(extra, path))
        return dev_order_complain(DEV_FAILED, "test", extra, strerror(errno));
    extra = extra ? path : NULL;
    if (!dev_places_find(&places))
        return DEV_FAILED;
    code = order.n_words ? DEV_FINE : test_folder(&places, ".", extra);
    for (int i = 0; i < order.n_words; i++)
        code |= stat(order.words[i], &st) == 0 && S_ISDIR(st.st_mode)
                    ? test_folder(&places, order.words[i], extra)
                    : test_file(&places, order.words[i], extra);
    return code;
}

const struct mk_verb dev_verb_test = {
    .name = "test",
    .args = "[FOLDER|NAME_test.c]...",
    .help = "Compile and run the tests of services.",
    .run = run,
};
