/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "child.h"
#include "config.h"
#include "frames.h"
#include "hearing.h"
#include "order.h"
#include "sanitizer.h"
#include "tester/progress.h"
#include "units.h"

#include <errno.h>
#include <glob.h>
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

static const mk_str ending = MK_STR_INIT("_test.c");

struct tally {
    size_t ok, failed;
};

/* What one file of tests needs. */
struct job {
    const struct dev_places *places;
    const char *extra; /* a file of the configuration; or "" */
    struct dev_units units;
    struct dev_compiled tests;
    char service[PATH_MAX], program[PATH_MAX], name[DEV_NAME_MAX];
    struct dev_hearing hearing;
    struct tally tally;
    size_t at;                     /* the number of the test under way, */
    char test[NAME_MAX_SHOWN + 1]; /* and its name; empty: none is */
};

/* ---- What the process with the tests says ---- */

static void on_line(void *ctx, mk_str line)
{
    static const mk_str begins = MK_STR_INIT(DEV_TEST_BEGINS), ends = MK_STR_INIT(DEV_TEST_ENDS);
    struct job *job = ctx;
    if (mk_str_starts(line, begins)) {
        uint64_t number = 0;
        mk_str name = mk_str_skip(line, begins.len);
        (void)mk_num_parse(mk_str_word(&name), &number);
        job->at = (size_t)number;
        snprintf(job->test, sizeof job->test, "%.*s",
                 MK_STR_ARG(mk_str_first(mk_str_trim(name), NAME_MAX_SHOWN)));
    } else if (mk_str_starts(line, ends)) {
        bool ok = mk_str_eq(mk_str_skip(line, ends.len), MK_STR("ok"));
        *(ok ? &job->tally.ok : &job->tally.failed) += 1;
        job->test[0] = '\0';
    } else {
        dev_order_write(stderr, line);
        fputc('\n', stderr);
    }
}

static void on_crash(void *ctx)
{
    (void)ctx; /* told when the process has ended */
}

/* How the process with the tests ended while one of them was under way. */
static void tell_crash(const struct job *job, int status, bool was_slow)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    const char *test = job->test[0] ? job->test : "the service, outside of its tests";
    printf("not ok %s.%s: ", job->name, test);
    if (was_slow)
        printf("it took more than %d s, and was ended\n", PATIENCE_S);
    else if (WIFSIGNALED(status) ||
             (job->hearing.has_crashed && !dev_frames_is_exit(mk_buf_str(&job->hearing.crash))))
        printf("it crashed\n");
    else
        printf("it ended the process, with exit code %d\n", WEXITSTATUS(status));
    if (job->hearing.has_crashed)
        dev_hearing_tell(&job->hearing, &text);
    else if (WIFSIGNALED(status))
        mk_buf_addf(&text, "%s\n", strsignal(WTERMSIG(status)));
    dev_order_write(stdout, mk_buf_str(&text));
    mk_buf_free(&text);
}

/* ---- That process ---- */

static bool start(struct job *job, struct dev_child *c)
{
    char path[3 * PATH_MAX], root[3 * PATH_MAX] = "";
    struct mk_buf load = mk_buf_fixed(path, sizeof path - 1), html = mk_buf_fixed(root, sizeof root - 1);
    struct dev_words words;
    dev_config_path(&load, job->units.at[0]->built.object);
    path[load.len] = '\0';
    if (job->units.html[0])
        dev_config_text(&html, job->units.html);
    root[html.len] = '\0';
    dev_words_init(&words);
    dev_sanitizer_add(&words, dev_units_sanitizer(&job->units));
    const char *const list[] = {job->program, path, root, job->extra, job->tests.object, job->name};
    for (size_t i = 0; i < MK_LEN(list); i++)
        dev_words_add(&words, mk_str_from_c(list[i]));
    dev_words_addf(&words, "%zu", job->at);
    bool ok = !load.failed && !html.failed && dev_child_start_heard(c, &words);
    dev_words_free(&words);
    return ok;
}

/* True: it had to be ended. Its silence is measured: whatever it does, it says when a test begins. */
static bool listen_to(struct job *job, struct dev_child *c)
{
    bool was_slow = false;
    dev_hearing_begin(&job->hearing);
    while (c->err >= 0) {
        struct pollfd ready = {.fd = c->err, .events = POLLIN};
        int n = poll(&ready, 1, PATIENCE_S * 1000);
        if (n == 0) {
            (void)kill(c->pid, was_slow ? SIGKILL : SIGABRT); /* which says where it is */
            was_slow = true;
        }
        dev_hearing_read(&job->hearing, &c->err);
    }
    return was_slow;
}

/* DEV_FINE: all tests have run. A crash ends one of them; the others get another process. */
static int run_tests(struct job *job)
{
    struct dev_child c;
    int status = 0;
    job->at = 0;
    for (;;) {
        if (!start(job, &c))
            return DEV_FAILED;
        bool was_slow = listen_to(job, &c);
        while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR)
            ;
        bool ended = WIFEXITED(status) && WEXITSTATUS(status) <= DEV_FAILED;
        if (job->test[0] == '\0' && (ended || WIFEXITED(status)))
            return ended && job->tally.ok + job->tally.failed ? DEV_FINE : DEV_FAILED;
        tell_crash(job, status, was_slow);
        if (job->test[0] == '\0')
            return DEV_FAILED;
        job->tally.failed++;
        job->test[0] = '\0';
        job->at++;
    }
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

static int test_service(struct job *job, const char *path)
{
    int code = DEV_FAILED;
    dev_hearing_init(&job->hearing, on_line, on_crash, job);
    (void)dev_units_update(&job->units);
    if (dev_units_are_fine(&job->units) && compile_tests(job, path))
        code = run_tests(job);
    dev_hearing_free(&job->hearing);
    return code;
}

static int test_file(const struct dev_places *places, const char *path, const char *extra,
                     struct tally *tally)
{
    struct job *job = mk_mem_zalloc(1, sizeof *job);
    int code = DEV_FAILED;
    if (!job)
        return code;
    job->places = places;
    job->extra = extra;
    if (!dev_places_print(job->program, "%s/monkey-duda-test", places->objects) ||
        access(job->program, X_OK) != 0) {
        code = dev_order_complain(DEV_FAILED, "test", job->program, "this part of Monkey is not installed");
    } else if (find_service(job, path) && dev_units_init(&job->units, places, job->service)) {
        code = test_service(job, path);
        dev_units_free(&job->units);
        dev_compiled_free(&job->tests);
    }
    tally->ok += job->tally.ok;
    tally->failed += job->tally.failed;
    mk_mem_free(job);
    return code;
}

static int test_folder(const struct dev_places *places, const char *folder, const char *extra,
                       struct tally *tally)
{
    char pattern[PATH_MAX];
    glob_t found;
    int code = DEV_FINE;
    if (!dev_places_print(pattern, "%s/*_test.c", folder) || glob(pattern, 0, NULL, &found) != 0)
        return dev_order_complain(DEV_FAILED, "test", folder,
                                  "there is no file whose name ends with _test.c");
    for (size_t i = 0; i < found.gl_pathc; i++)
        code |= test_file(places, found.gl_pathv[i], extra, tally);
    globfree(&found);
    return code;
}

static void sum_up(const struct tally *tally)
{
    size_t all = tally->ok + tally->failed;
    if (tally->failed)
        printf("%zu of %zu test%s failed\n", tally->failed, all, all == 1 ? "" : "s");
    else if (all)
        printf("%zu test%s passed\n", all, all == 1 ? "" : "s");
}

static int run(int argc, char **argv)
{
    const char *extra = NULL;
    const struct dev_option options[] = {{'i', "include", &extra, NULL}};
    struct dev_order order = {
        .usage = usage, .help = help, .options = options, .n_options = 1, .words_max = 1024};
    struct dev_places places;
    struct tally tally = {0};
    char path[PATH_MAX] = "";
    struct stat st;
    int code;
    if (!dev_order_read(&order, argc, argv, &code))
        return code;
    if (extra && !realpath(extra, path))
        return dev_order_complain(DEV_FAILED, "test", extra, strerror(errno));
    if (!dev_places_find(&places))
        return DEV_FAILED;
    code = order.n_words ? DEV_FINE : test_folder(&places, ".", path, &tally);
    for (int i = 0; i < order.n_words; i++)
        code |= stat(order.words[i], &st) == 0 && S_ISDIR(st.st_mode)
                    ? test_folder(&places, order.words[i], path, &tally)
                    : test_file(&places, order.words[i], path, &tally);
    sum_up(&tally);
    return code || tally.failed ? DEV_FAILED : DEV_FINE;
}

const struct mk_verb dev_verb_test = {
    .name = "test",
    .args = "[FOLDER|NAME_test.c]...",
    .help = "Compile and run the tests of services.",
    .run = run,
};
