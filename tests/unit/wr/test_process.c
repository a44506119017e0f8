/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit/test.h"
#include "wr/process_tree.h"

enum { MS = 1000000 };

/* Uses that much CPU time, even on a busy machine. */
static void use_cpu_time(long ms)
{
    struct timespec t;
    do {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    } while (t.tv_sec * 1000 + t.tv_nsec / MS < ms);
}

struct worker {
    pid_t pid;
    int ready, go;
};

/* A process that burns CPU time, reports it, and waits until it may exit. */
static struct worker start_worker(long ms)
{
    int ready[2], go[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char c;
        close(ready[0]);
        close(go[1]);
        (void)prctl(PR_SET_NAME, "a) b (c");
        use_cpu_time(ms);
        _exit(write(ready[1], "", 1) == 1 && read(go[0], &c, 1) == 1 ? 0 : 1);
    }
    close(ready[1]);
    close(go[0]);
    return (struct worker){pid, ready[0], go[1]};
}

static void await(struct worker *w)
{
    char c;
    assert_int_equal(read(w->ready, &c, 1), 1);
}

static void end_worker(struct worker *w)
{
    /* closing is not enough: children that were started later inherited this end, so there is no EOF */
    assert_int_equal(write(w->go, "", 1), 1);
    close(w->go);
    assert_int_equal(waitpid(w->pid, NULL, 0), w->pid);
    close(w->ready);
}

static void process_time_is_exact(void **state)
{
    (void)state;
    struct worker w = start_worker(35);
    struct wr_process p;
    await(&w);
    assert_true(wr_process_init(&p, w.pid));
    assert_string_equal(p.name, "a) b (c");
    assert_int_equal(p.parent, getpid());
    assert_true(p.self.total >= (uint64_t)35 * MS);
    assert_true(p.self.total < (uint64_t)5000 * MS);
    assert_true(p.self.total % (10 * MS) != 0); /* the resolution is finer than ticks of 10 ms */
    wr_process_fini(&p);
    end_worker(&w);
    assert_false(wr_process_init(&p, w.pid));
}

static void process_threads_and_memory_are_read(void **state)
{
    (void)state;
    struct worker w = start_worker(5);
    struct wr_process p;
    await(&w);
    assert_true(wr_process_init(&p, w.pid));
    assert_true(wr_process_read_threads(&p));
    assert_int_equal(p.n_threads, 1);
    assert_int_equal(p.threads[0].tid, w.pid);
    assert_true(p.threads[0].run.ran >= (uint64_t)5 * MS);
    wr_process_read_memory(&p);
    assert_true(p.pss_is_known && p.pss_kb > 0 && p.hwm_kb > 0);
    end_worker(&w);
    wr_process_read_cpu(&p);
    assert_true(p.is_gone);
    assert_true(wr_process_read_threads(&p)); /* the last values are kept */
    assert_int_equal(p.n_threads, 1);
    wr_process_fini(&p);
}

/* The root of the tree is the parent, which is this test. */
static void process_tree_includes_and_sums_children(void **state)
{
    (void)state;
    struct worker all[3];
    struct wr_process_tree f;
    struct wr_cpu before, with;
    wr_process_tree_init(&f);
    for (size_t i = 0; i < MK_LEN(all); i++)
        all[i] = start_worker(20);
    for (size_t i = 0; i < MK_LEN(all); i++)
        await(&all[i]);
    assert_true(wr_process_tree_add(&f, all[0].pid));
    wr_process_tree_read_process_cpu(&f, &before);
    assert_true(before.total >= (uint64_t)20 * MS);
    for (size_t i = 1; i < MK_LEN(all); i++)
        assert_true(wr_process_tree_add(&f, all[i].pid));
    wr_process_tree_read_process_cpu(&f, &with);
    assert_true(with.total >= before.total + (uint64_t)40 * MS);
    assert_int_equal(f.n, 3);
    wr_process_tree_mark_roots(&f);
    assert_true(f.all[0].is_root && f.all[1].is_root);
    assert_null(wr_process_tree_find_dead_root(&f));
    end_worker(&all[1]);
    wr_process_tree_read_process_cpu(&f, &before);
    assert_ptr_equal(wr_process_tree_find_dead_root(&f), wr_process_tree_find(&f, all[1].pid));
    assert_true(before.total >= with.total); /* the CPU time of an exited child still counts */
    end_worker(&all[0]);
    end_worker(&all[2]);
    wr_process_tree_fini(&f);
}

/* A parent with two children: it waits for one and ignores the other. */
static void lead(int ready, int go, bool ignores)
{
    struct worker w;
    char c;
    if (ignores)
        signal(SIGCHLD, SIG_IGN);
    w = start_worker(60);
    await(&w);
    if (write(ready, "", 1) != 1 || read(go, &c, 1) != 1)
        _exit(1);
    if (write(w.go, "", 1) != 1)
        _exit(1);
    (void)waitpid(w.pid, NULL, 0); /* fails if SIGCHLD is ignored, but still waits for the process to exit */
    if (write(ready, "", 1) != 1 || read(go, &c, 1) != 0)
        _exit(1);
    _exit(0);
}

static void an_ended_child_is_counted_once(bool ignores)
{
    int ready[2], go[2];
    char c;
    struct wr_process_tree f;
    struct wr_cpu before, after;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(go[1]);
        lead(ready[1], go[0], ignores);
    }
    close(go[0]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    wr_process_tree_init(&f);
    assert_true(wr_process_tree_add(&f, pid));
    assert_true(wr_process_tree_add_descendants(&f));
    assert_int_equal(f.n, 2);
    wr_process_tree_read_process_cpu(&f, &before);
    assert_true(before.total >= (uint64_t)60 * MS);
    assert_int_equal(write(go[1], "", 1), 1);
    assert_int_equal(read(ready[0], &c, 1), 1);
    wr_process_tree_read_process_cpu(&f, &after);
    assert_int_equal(f.n, 1);
    /* No time is counted twice or lost, except that the kernel counts waited children in ticks. */
    assert_true(after.total + (uint64_t)25 * MS >= before.total);
    assert_true(after.total < before.total + (uint64_t)45 * MS);
    close(go[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(ready[0]);
    close(ready[1]);
    wr_process_tree_fini(&f);
}

static void process_tree_waited_child_is_counted_once(void **state)
{
    (void)state;
    an_ended_child_is_counted_once(false);
}

static void process_tree_ignored_child_is_counted_once(void **state)
{
    (void)state;
    an_ended_child_is_counted_once(true);
}

static void process_tree_pss_needs_all_processes(void **state)
{
    (void)state;
    struct wr_process all[] = {{.pid = 1, .pss_is_known = true, .pss_kb = 100},
                               {.pid = 2, .pss_is_known = true, .pss_kb = 20},
                               {.pid = 3}};
    struct wr_process_tree f = {.all = all, .n = MK_LEN(all)};
    uint64_t kb;
    assert_false(wr_process_tree_pss_kb(&f, &kb)); /* the third process is alive, but unreadable */
    all[2].is_dead = true;
    assert_true(wr_process_tree_pss_kb(&f, &kb));
    assert_int_equal(kb, 120);
    f.n = 0;
    assert_false(wr_process_tree_pss_kb(&f, &kb));
}

static void process_user_and_system_share_the_exact_total(void **state)
{
    (void)state;
    double user, system;
    wr_cpu_split(&(struct wr_cpu){10000000, 2, 6}, &user, &system);
    assert_int_equal((int)user, 2500);
    assert_int_equal((int)system, 7500);
    wr_cpu_split(&(struct wr_cpu){5000, 0, 0}, &user, &system);
    assert_int_equal((int)user, 5);
    assert_int_equal((int)system, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(process_time_is_exact),
        cmocka_unit_test(process_threads_and_memory_are_read),
        cmocka_unit_test(process_tree_includes_and_sums_children),
        cmocka_unit_test(process_tree_waited_child_is_counted_once),
        cmocka_unit_test(process_tree_ignored_child_is_counted_once),
        cmocka_unit_test(process_tree_pss_needs_all_processes),
        cmocka_unit_test(process_user_and_system_share_the_exact_total),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
