/* SPDX-License-Identifier: Apache-2.0 */
#include "command_test.h"

#include "env_file.h"
#include "junit.h"
#include "options.h"
#include "private_dir.h"
#include "process.h"
#include "sanitizer.h"
#include "server_config.h"
#include "source_set.h"
#include "stderr_reader.h"
#include "symbolize.h"
#include "tester/progress.h"

#include <errno.h>
#include <monkey/clock.h>
#include <monkey/mem.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_MAX = 256 * 1024, PATIENCE_S = 60, NAME_MAX_SHOWN = 128, BROKEN = 2 };

static const char usage[] =
    "usage: monkey test [-i FILE] [-k PATTERN] [--junit FILE] [FOLDER|NAME_test.c]...\n";
static const char help[] =
    "Runs the tests of services: see duda/test.h. Without an argument: all tests of this folder.\n"
    "\n"
    "  -i, --include FILE  include a file with configuration sections of the service or of plugins\n"
    "  -k, --keyword PATTERN\n"
    "                      run only tests whose name (FILE.TEST) contains PATTERN, or matches it if it has "
    "`*`\n"
    "  -j, --junit FILE    write the results as JUnit XML\n"
    "  -h, --help          print this help\n"
    "\n"
    "NAME_test.c contains the tests of NAME.c, or of the service to whose folder it belongs. Each test runs "
    "in a\n"
    "process of its own, with a new instance of the service, a client in memory and empty databases; no port "
    "is\n"
    "opened. The exit code is 1 if a test failed.\n";

struct tally {
    size_t ok, failed;
};

/* The options of the command line, and the results. */
struct test_options {
    const struct dev_paths *paths;
    const char *extra;      /* a configuration file; or "" */
    const char *pattern;    /* of the names of tests; or "" */
    struct dev_junit junit; /* the results */
    struct tally tally;
};

/* State of one test file. */
struct test_job {
    struct test_options *options;
    struct dev_source_set source_set;
    struct dev_compile_result tests;
    const char *service_path; /* points to `service` */
    struct dev_service_words words;
    char service[PATH_MAX], program[PATH_MAX], name[DEV_NAME_MAX];
    struct dev_stderr_reader stderr_reader;
    struct dev_process process;
    size_t n_run;                  /* number of tests that have begun */
    char folder[PATH_MAX];         /* private folder, with a folder for each test */
    uint64_t began_us;             /* when the running test began */
    struct mk_buf output;          /* what the running test has printed */
    size_t at;                     /* index of the running test */
    char test[NAME_MAX_SHOWN + 1]; /* name of the running test; empty: none */
};

/* ---- Output of the test process ---- */

static void end_test(struct test_job *test_job, bool ok)
{
    struct test_options *o = test_job->options;
    *(ok ? &o->tally.ok : &o->tally.failed) += 1;
    dev_junit_add(&o->junit, test_job->name, test_job->test, ok, mk_clock_us() - test_job->began_us,
                  mk_buf_str(&test_job->output));
    test_job->test[0] = '\0';
}

static void on_tester_output(void *ctx, mk_str line)
{
    struct test_job *test_job = ctx;
    dev_print_text(stdout, line);
    dev_print_text(stdout, MK_STR("\n"));
    if (test_job->output.len + line.len < TEXT_MAX)
        mk_buf_addf(&test_job->output, "%.*s\n", MK_STR_ARG(line));
}

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
        test_job->n_run++;
        test_job->began_us = mk_clock_us();
        mk_buf_clear(&test_job->output);
    } else if (mk_str_starts(line, ends)) {
        /* the test has printed everything before this line */
        dev_stderr_reader_read_lines(&test_job->process.out, &test_job->process.rest[0], on_tester_output,
                                     test_job);
        end_test(test_job, mk_str_eq(mk_str_skip(line, ends.len), MK_STR("ok")));
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
static void print_test_crash(struct test_job *test_job, int status, bool was_slow)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    const char *test = test_job->test[0] ? test_job->test : "the service, outside of the tests";
    mk_buf_addf(&text, "not ok %s.%s: ", test_job->name, test);
    if (was_slow)
        mk_buf_addf(&text, "killed after %d s without progress\n", PATIENCE_S);
    else if (WIFSIGNALED(status) ||
             (test_job->stderr_reader.has_crashed &&
              !dev_symbolize_is_exit_report(mk_buf_str(&test_job->stderr_reader.crash))))
        mk_buf_add(&text, MK_STR("it crashed\n"));
    else
        mk_buf_addf(&text, "the process exited with code %d\n", WEXITSTATUS(status));
    if (test_job->stderr_reader.has_crashed)
        dev_stderr_reader_format_crash(&test_job->stderr_reader, &text);
    else if (WIFSIGNALED(status))
        mk_buf_addf(&text, "%s\n", strsignal(WTERMSIG(status)));
    dev_print_text(stdout, mk_buf_str(&text));
    mk_buf_add(&test_job->output, mk_buf_str(&text));
    mk_buf_free(&text);
}

/* ---- The test process ---- */

static bool start_tester(struct test_job *test_job)
{
    char path[3 * PATH_MAX], root[3 * PATH_MAX] = "";
    struct mk_buf load = mk_buf_fixed(path, sizeof path - 1), html = mk_buf_fixed(root, sizeof root - 1);
    struct dev_argv args;
    struct dev_env env;
    struct mk_buf errors = mk_buf_growing(TEXT_MAX);
    dev_server_config_quote_path(&load, test_job->source_set.at[0]->built.object);
    path[load.len] = '\0';
    if (test_job->source_set.html[0])
        dev_server_config_quote(&html, test_job->source_set.html);
    root[html.len] = '\0';
    dev_argv_init(&args);
    dev_sanitizer_add_preload(&args, dev_source_set_sanitizer(&test_job->source_set));
    const char *const list[] = {test_job->program,      path,          root, test_job->options->extra,
                                test_job->tests.object, test_job->name};
    for (size_t i = 0; i < MK_LEN(list); i++)
        dev_argv_add(&args, mk_str_from_c(list[i]));
    dev_argv_addf(&args, "%zu", test_job->at);
    dev_argv_add(&args, mk_str_from_c(test_job->folder));
    dev_argv_add(&args, mk_str_from_c(test_job->options->pattern));
    bool ok = dev_env_read(&env, test_job->source_set.env_path, &errors);
    args.envp = env.vars;
    ok = ok && !load.failed && !html.failed && dev_process_start(&test_job->process, &args);
    dev_print_text(stderr, mk_buf_str(&errors));
    mk_buf_free(&errors);
    dev_env_free(&env);
    dev_argv_free(&args);
    return ok;
}

/* Reads the output until the process exits. Kills the process if it prints nothing for PATIENCE_S, because it
 * announces each test that begins. Returns true if it was killed. */
static bool read_tester_until_exit(struct test_job *test_job)
{
    struct dev_process *c = &test_job->process;
    bool was_slow = false;
    dev_stderr_reader_reset(&test_job->stderr_reader);
    while (c->err >= 0 || c->out >= 0) {
        struct pollfd ready[] = {{.fd = c->err, .events = POLLIN}, {.fd = c->out, .events = POLLIN}};
        int n = poll(ready, 2, PATIENCE_S * 1000);
        if (n == 0) {
            (void)kill(c->pid, was_slow ? SIGKILL : SIGABRT); /* SIGABRT prints a stack */
            was_slow = true;
        }
        dev_stderr_reader_read(&test_job->stderr_reader, &c->err);
        dev_stderr_reader_read_lines(&c->out, &c->rest[0], on_tester_output, test_job);
    }
    return was_slow;
}

/* Returns DEV_EXIT_OK if all tests have run. A crash ends one test; a new process runs the remaining ones. */
static int run_tests(struct test_job *test_job)
{
    int status = 0;
    test_job->at = 0;
    for (;;) {
        if (!start_tester(test_job))
            return DEV_EXIT_FAILED;
        bool was_slow = read_tester_until_exit(test_job);
        while (waitpid(test_job->process.pid, &status, 0) < 0 && errno == EINTR)
            ;
        dev_process_close_pipes(&test_job->process);
        bool ended = WIFEXITED(status) && WEXITSTATUS(status) <= DEV_EXIT_FAILED;
        if (test_job->test[0] == '\0' && (ended || WIFEXITED(status)))
            return ended ? DEV_EXIT_OK : DEV_EXIT_FAILED;
        if (WIFEXITED(status) && WEXITSTATUS(status) == BROKEN && !test_job->stderr_reader.has_crashed)
            return DEV_EXIT_FAILED; /* the service does not start; the reason has been printed */
        print_test_crash(test_job, status, was_slow);
        if (test_job->test[0] == '\0')
            return DEV_EXIT_FAILED;
        end_test(test_job, false);
        test_job->at++;
    }
}

/* ---- Compilation ---- */

static bool compile_tests(struct test_job *test_job, const char *path)
{
    struct dev_source source;
    if (!dev_source_load(&source, path))
        return dev_print_error(false, "test", path, strerror(errno));
    const struct dev_compile how = {.paths = test_job->options->paths, .kind = DEV_COMPILE_TEST};
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

/* Finds the service of a test file: the given folder, if any; the folder of the file, or the folder above it,
 * if its files form one service; otherwise the file NAME.c next to NAME_test.c. */
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

static int test_file(struct test_options *o, const char *path, const char *folder)
{
    struct test_job *test_job = mk_mem_zalloc(1, sizeof *test_job);
    int code = DEV_EXIT_FAILED;
    if (!test_job)
        return code;
    test_job->options = o;
    test_job->service_path = test_job->service;
    test_job->words = (struct dev_service_words){&test_job->service_path, 1};
    test_job->output = mk_buf_growing(2 * TEXT_MAX);
    if (!dev_paths_format(test_job->program, "%s/monkey-duda-test", o->paths->objects) ||
        access(test_job->program, X_OK) != 0) {
        code = dev_print_error(DEV_EXIT_FAILED, "test", test_job->program,
                               "monkey-duda-test, a part of Monkey, is not installed");
    } else if (find_service_source(test_job, path, folder) &&
               dev_source_set_init(&test_job->source_set, o->paths, &test_job->words)) {
        if (dev_private_dir_create_for_tests(test_job->folder))
            code = compile_and_test_service(test_job, path);
        dev_private_dir_remove_tree(test_job->folder);
        dev_source_set_free(&test_job->source_set);
        dev_compile_result_free(&test_job->tests);
    }
    mk_buf_free(&test_job->output);
    mk_mem_free(test_job);
    return code;
}

static int test_folder(struct test_options *o, const char *folder)
{
    struct dev_folder_scan scan;
    int code = DEV_EXIT_OK;
    dev_folder_scan_begin(&scan, folder);
    bool is_service = dev_folder_is_service(folder);
    mk_str rest = mk_buf_str(&scan.tests), folders = mk_buf_str(&scan.folders),
           root = mk_str_cut(&folders, '\n');
    size_t n = 0;
    while (rest.len) {
        char path[PATH_MAX];
        mk_str file = mk_str_cut(&rest, '\n');
        if (!is_service && mk_str_find_last(file, '/') != root.len)
            continue; /* subfolders of a folder of handlers are not part of it */
        if (dev_paths_format(path, "%.*s", MK_STR_ARG(file)))
            code |= test_file(o, path, is_service ? folder : NULL);
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

static int finish_tests(const struct test_options *o, const char *junit, int code)
{
    print_summary(&o->tally);
    if (code == DEV_EXIT_OK && o->tally.ok + o->tally.failed == 0)
        code = dev_print_error(DEV_EXIT_FAILED, "test", o->pattern, "no test has such a name");
    if (junit && !dev_junit_write(&o->junit, junit))
        code = dev_print_error(DEV_EXIT_FAILED, "test", junit, strerror(errno));
    return code || o->tally.failed ? DEV_EXIT_FAILED : DEV_EXIT_OK;
}

static int run_test_command(int argc, char **argv)
{
    const char *extra = NULL, *pattern = "", *junit = NULL;
    const struct dev_option options[] = {
        {'i', "include", &extra, NULL}, {'k', "keyword", &pattern, NULL}, {'j', "junit", &junit, NULL}};
    struct dev_options opts = {
        .usage = usage, .help = help, .options = options, .n_options = MK_LEN(options), .args_max = 1024};
    struct dev_paths paths;
    char path[PATH_MAX] = "";
    struct stat st;
    int code;
    if (!dev_options_parse(&opts, argc, argv, &code))
        return code;
    if (extra && !realpath(extra, path))
        return dev_print_error(DEV_EXIT_FAILED, "test", extra, strerror(errno));
    if (!dev_paths_find(&paths))
        return DEV_EXIT_FAILED;
    struct test_options o = {.paths = &paths, .extra = path, .pattern = pattern};
    dev_junit_init(&o.junit);
    code = opts.n_args ? DEV_EXIT_OK : test_folder(&o, ".");
    for (int i = 0; i < opts.n_args; i++)
        code |= stat(opts.args[i], &st) == 0 && S_ISDIR(st.st_mode) ? test_folder(&o, opts.args[i])
                                                                    : test_file(&o, opts.args[i], NULL);
    code = finish_tests(&o, junit, code);
    dev_junit_free(&o.junit);
    return code;
}

const struct mk_command dev_command_test = {
    .name = "test",
    .args = "[FOLDER|NAME_test.c]...",
    .help = "Compile and run the tests of services.",
    .run = run_test_command,
};
