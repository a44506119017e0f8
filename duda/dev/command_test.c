/* SPDX-License-Identifier: Apache-2.0 */
#include "command_test.h"

#include "options.h"
#include "process.h"
#include "sanitizer.h"
#include "server_config.h"
#include "source_set.h"
#include "stderr_reader.h"
#include "symbolize.h"
#include "tester/progress.h"

#include <errno.h>
#include <monkey/mem.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_MAX = 256 * 1024, PATIENCE_S = 60, NAME_MAX_SHOWN = 128 };

static const char usage[] = "usage: monkey test [-i FILE] [FOLDER|NAME_test.c]...\n";
static const char help[] = "Runs the tests of services. NAME_test.c holds those of NAME.c: see duda/test.h. "
                           "Without an argument: all\n"
                           "of this folder.\n"
                           "\n"
                           "  -i, --include FILE  more of the configuration of the service\n"
                           "  -h, --help          this text\n"
                           "\n"
                           "Service and tests run in one process, with a server and a client in memory: no "
                           "port is opened. The exit\n"
                           "code is 1 if a test failed.\n";

struct tally {
    size_t ok, failed;
};

/* State of one test file. */
struct test_job {
    const struct dev_paths *paths;
    const char *extra; /* a configuration file; or "" */
    struct dev_source_set source_set;
    struct dev_compile_result tests;
    const char *service_path; /* points to `service` */
    struct dev_service_words words;
    char service[PATH_MAX], program[PATH_MAX], name[DEV_NAME_MAX];
    struct dev_stderr_reader stderr_reader;
    struct tally tally;
    size_t at;                     /* index of the running test */
    char test[NAME_MAX_SHOWN + 1]; /* name of the running test; empty: none */
};

/* ---- Output of the test process ---- */

static void on_tester_line(void *ctx, mk_str line)
{
    static const mk_str begins = MK_STR_INIT(DEV_TEST_PROGRESS_BEGIN),
                        ends = MK_STR_INIT(DEV_TEST_PROGRESS_END);
    struct test_job *test_job = ctx;
    if (mk_str_starts(line, begins)) {
        uint64_t number = 0;
        mk_str name = mk_str_skip(line, begins.len);
        (void)mk_num_parse(mk_str_word(&name), &number);
        test_job->at = (size_t)number;
        snprintf(test_job->test, sizeof test_job->test, "%.*s",
                 MK_STR_ARG(mk_str_first(mk_str_trim(name), NAME_MAX_SHOWN)));
    } else if (mk_str_starts(line, ends)) {
        bool ok = mk_str_eq(mk_str_skip(line, ends.len), MK_STR("ok"));
        *(ok ? &test_job->tally.ok : &test_job->tally.failed) += 1;
        test_job->test[0] = '\0';
    } else {
        dev_print_text(stderr, line);
        fputc('\n', stderr);
    }
}

static void ignore_crash(void *ctx)
{
    (void)ctx; /* the report is printed when the process has exited */
}

/* Reports how the test process ended during a test. */
static void print_test_crash(const struct test_job *test_job, int status, bool was_slow)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    const char *test = test_job->test[0] ? test_job->test : "the service, outside of the tests";
    printf("not ok %s.%s: ", test_job->name, test);
    if (was_slow)
        printf("killed after %d s without progress\n", PATIENCE_S);
    else if (WIFSIGNALED(status) ||
             (test_job->stderr_reader.has_crashed &&
              !dev_symbolize_is_exit_report(mk_buf_str(&test_job->stderr_reader.crash))))
        printf("it crashed\n");
    else
        printf("the process exited with code %d\n", WEXITSTATUS(status));
    if (test_job->stderr_reader.has_crashed)
        dev_stderr_reader_format_crash(&test_job->stderr_reader, &text);
    else if (WIFSIGNALED(status))
        mk_buf_addf(&text, "%s\n", strsignal(WTERMSIG(status)));
    dev_print_text(stdout, mk_buf_str(&text));
    mk_buf_free(&text);
}

/* ---- The test process ---- */

static bool start_tester(struct test_job *test_job, struct dev_process *c)
{
    char path[3 * PATH_MAX], root[3 * PATH_MAX] = "";
    struct mk_buf load = mk_buf_fixed(path, sizeof path - 1), html = mk_buf_fixed(root, sizeof root - 1);
    struct dev_argv args;
    dev_server_config_quote_path(&load, test_job->source_set.at[0]->built.object);
    path[load.len] = '\0';
    if (test_job->source_set.html[0])
        dev_server_config_quote(&html, test_job->source_set.html);
    root[html.len] = '\0';
    dev_argv_init(&args);
    dev_sanitizer_add_preload(&args, dev_source_set_sanitizer(&test_job->source_set));
    const char *const list[] = {test_job->program,      path,          root, test_job->extra,
                                test_job->tests.object, test_job->name};
    for (size_t i = 0; i < MK_LEN(list); i++)
        dev_argv_add(&args, mk_str_from_c(list[i]));
    dev_argv_addf(&args, "%zu", test_job->at);
    bool ok = !load.failed && !html.failed && dev_process_start_piped_stderr(c, &args);
    dev_argv_free(&args);
    return ok;
}

/* Reads the output until the process exits. Kills the process if it prints nothing for PATIENCE_S, because it
 * announces each test that begins. Returns true if it was killed. */
static bool read_tester_until_exit(struct test_job *test_job, struct dev_process *c)
{
    bool was_slow = false;
    dev_stderr_reader_reset(&test_job->stderr_reader);
    while (c->err >= 0) {
        struct pollfd ready = {.fd = c->err, .events = POLLIN};
        int n = poll(&ready, 1, PATIENCE_S * 1000);
        if (n == 0) {
            (void)kill(c->pid, was_slow ? SIGKILL : SIGABRT); /* SIGABRT prints a stack */
            was_slow = true;
        }
        dev_stderr_reader_read(&test_job->stderr_reader, &c->err);
    }
    return was_slow;
}

/* Returns DEV_EXIT_OK if all tests have run. A crash ends one test; a new process runs the remaining ones. */
static int run_tests(struct test_job *test_job)
{
    struct dev_process c;
    int status = 0;
    test_job->at = 0;
    for (;;) {
        if (!start_tester(test_job, &c))
            return DEV_EXIT_FAILED;
        bool was_slow = read_tester_until_exit(test_job, &c);
        while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR)
            ;
        bool ended = WIFEXITED(status) && WEXITSTATUS(status) <= DEV_EXIT_FAILED;
        if (test_job->test[0] == '\0' && (ended || WIFEXITED(status)))
            return ended && test_job->tally.ok + test_job->tally.failed ? DEV_EXIT_OK : DEV_EXIT_FAILED;
        print_test_crash(test_job, status, was_slow);
        if (test_job->test[0] == '\0')
            return DEV_EXIT_FAILED;
        test_job->tally.failed++;
        test_job->test[0] = '\0';
        test_job->at++;
    }
}

/* ---- Compilation ---- */

static bool compile_tests(struct test_job *test_job, const char *path)
{
    struct dev_source source;
    if (!dev_source_load(&source, path))
        return dev_print_error(false, "test", path, strerror(errno));
    const struct dev_compile how = {.paths = test_job->paths, .kind = DEV_COMPILE_TEST};
    dev_compile(&how, &source, &test_job->tests);
    dev_print_text(stderr, mk_buf_str(&test_job->tests.messages));
    dev_source_free(&source);
    return test_job->tests.ok;
}

static bool is_regular_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Finds the service of a test file: the given folder, if any; the folder of the file, or the folder above it, if its files form one service; otherwise
 * the file NAME.c next to NAME_test.c. */
static bool find_service_source(struct test_job *test_job, const char *path, const char *folder)
{
    char real[PATH_MAX], parent[PATH_MAX];
    mk_str all = mk_str_from_c(path), extension = mk_str_skip(all, mk_str_find_last(all, '.'));
    mk_str stem = mk_str_first(all, all.len - extension.len);
    if (!dev_source_is_code(all) || !mk_str_ends(stem, MK_STR("_test")))
        return dev_print_error(false, "test", path, "the name of a test file must end with _test.c");
    mk_str base = mk_str_first(stem, stem.len - 5);
    mk_str leaf = mk_str_skip(base, mk_str_find_last(base, '/') + 1);
    snprintf(test_job->name, sizeof test_job->name, "%.*s",
             MK_STR_ARG(mk_str_first(leaf, sizeof test_job->name - 1)));
    if (folder)
        return dev_paths_format(test_job->service, "%s", folder);
    if (!realpath(path, real))
        return dev_print_error(false, "test", path, strerror(errno));
    *strrchr(real, '/') = '\0';
    bool ok = dev_paths_format(test_job->service, "%.*s.c", MK_STR_ARG(base));
    if (dev_folder_is_service(real))
        return dev_paths_format(test_job->service, "%s", real);
    if (!ok || is_regular_file(test_job->service))
        return ok;
    ok = dev_paths_format(test_job->service, "%.*s%.*s", MK_STR_ARG(base), MK_STR_ARG(extension));
    if (!ok || is_regular_file(test_job->service))
        return ok;
    if (dev_paths_format(parent, "%s/..", real) && dev_folder_is_service(parent))
        return dev_paths_format(test_job->service, "%s", parent);
    return ok;
}

static int compile_and_test_service(struct test_job *test_job, const char *path)
{
    int code = DEV_EXIT_FAILED;
    dev_stderr_reader_init(&test_job->stderr_reader, on_tester_line, ignore_crash, test_job);
    (void)dev_source_set_update(&test_job->source_set);
    if (dev_source_set_is_compiled(&test_job->source_set) && compile_tests(test_job, path))
        code = run_tests(test_job);
    dev_stderr_reader_free(&test_job->stderr_reader);
    return code;
}

static int test_file(const struct dev_paths *paths, const char *path, const char *folder, const char *extra,
                     struct tally *tally)
{
    struct test_job *test_job = mk_mem_zalloc(1, sizeof *test_job);
    int code = DEV_EXIT_FAILED;
    if (!test_job)
        return code;
    test_job->paths = paths;
    test_job->extra = extra;
    test_job->service_path = test_job->service;
    test_job->words = (struct dev_service_words){&test_job->service_path, 1};
    if (!dev_paths_format(test_job->program, "%s/monkey-duda-test", paths->objects) ||
        access(test_job->program, X_OK) != 0) {
        code = dev_print_error(DEV_EXIT_FAILED, "test", test_job->program,
                               "monkey-duda-test, a part of Monkey, is not installed");
    } else if (find_service_source(test_job, path, folder) &&
               dev_source_set_init(&test_job->source_set, paths, &test_job->words)) {
        code = compile_and_test_service(test_job, path);
        dev_source_set_free(&test_job->source_set);
        dev_compile_result_free(&test_job->tests);
    }
    tally->ok += test_job->tally.ok;
    tally->failed += test_job->tally.failed;
    mk_mem_free(test_job);
    return code;
}

static int test_folder(const struct dev_paths *paths, const char *folder, const char *extra,
                       struct tally *tally)
{
    struct dev_folder_scan scan;
    int code = DEV_EXIT_OK;
    dev_folder_scan_begin(&scan, folder);
    bool is_service = dev_folder_is_service(folder);
    size_t n = 0;
    for (mk_str rest = mk_buf_str(&scan.tests), folders = mk_buf_str(&scan.folders),
                root = mk_str_cut(&folders, '\n');
         rest.len;) {
        char path[PATH_MAX];
        mk_str file = mk_str_cut(&rest, '\n'); /* subfolders of a folder of handlers are not part of it */
        if (!is_service && mk_str_find_last(file, '/') != root.len)
            continue;
        if (dev_paths_format(path, "%.*s", MK_STR_ARG(file)))
            code |= test_file(paths, path, is_service ? folder : NULL, extra, tally);
        n++;
    }
    dev_folder_scan_free(&scan);
    return n ? code
             : dev_print_error(DEV_EXIT_FAILED, "test", folder,
                               "the folder has no file whose name ends with _test.c");
}

static void print_summary(const struct tally *tally)
{
    size_t all = tally->ok + tally->failed;
    if (tally->failed)
        printf("%zu of %zu test%s failed\n", tally->failed, all, all == 1 ? "" : "s");
    else if (all)
        printf("%zu test%s passed\n", all, all == 1 ? "" : "s");
}

static int run_test_command(int argc, char **argv)
{
    const char *extra = NULL;
    const struct dev_option options[] = {{'i', "include", &extra, NULL}};
    struct dev_options opts = {
        .usage = usage, .help = help, .options = options, .n_options = 1, .args_max = 1024};
    struct dev_paths paths;
    struct tally tally = {0};
    char path[PATH_MAX] = "";
    struct stat st;
    int code;
    if (!dev_options_parse(&opts, argc, argv, &code))
        return code;
    if (extra && !realpath(extra, path))
        return dev_print_error(DEV_EXIT_FAILED, "test", extra, strerror(errno));
    if (!dev_paths_find(&paths))
        return DEV_EXIT_FAILED;
    code = opts.n_args ? DEV_EXIT_OK : test_folder(&paths, ".", path, &tally);
    for (int i = 0; i < opts.n_args; i++)
        code |= stat(opts.args[i], &st) == 0 && S_ISDIR(st.st_mode)
                    ? test_folder(&paths, opts.args[i], path, &tally)
                    : test_file(&paths, opts.args[i], NULL, path, &tally);
    print_summary(&tally);
    return code || tally.failed ? DEV_EXIT_FAILED : DEV_EXIT_OK;
}

const struct mk_command dev_command_test = {
    .name = "test",
    .args = "[FOLDER|NAME_test.c]...",
    .help = "Compile and run the tests of services.",
    .run = run_test_command,
};
