/* SPDX-License-Identifier: Apache-2.0 */
#include "fiber/fiber.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fiber/switch.h"
#include "unit/test.h"

static struct duda_stack_pool *stacks;

static void setup_stacks(void)
{
    stacks = duda_stack_pool_new(64 << 10);
    assert_non_null(stacks);
}

static void teardown_stacks(void)
{
    assert_int_equal(duda_stack_pool_count_used(stacks), 0);
    duda_stack_pool_free(stacks);
}

struct job {
    struct duda_fiber *self;
    int n, steps;
    double sum;
};

/* Registers of all kinds survive a stack switch. */
static void count(void *arg)
{
    struct job *j = arg;
    double half = 0.5;
    for (int i = 0; i < j->n; i++) {
        char buffer[512];
        memset(buffer, i, sizeof buffer);
        j->sum += half;
        j->steps++;
        duda_fiber_yield(j->self);
        assert_int_equal(buffer[511], (char)i);
    }
}

static void fiber_resumes_after_yield(void **state)
{
    struct job j = {.n = 100};
    (void)state;
    j.self = duda_fiber_new(stacks, count, &j);
    assert_non_null(j.self);
    for (int i = 1; i <= 100; i++) {
        assert_false(duda_fiber_resume(j.self));
        assert_int_equal(j.steps, i);
    }
    assert_true(duda_fiber_resume(j.self));
    duda_fiber_free(j.self);
    assert_true(j.sum > 49.9 && j.sum < 50.1);
}

static void fiber_many_interleave(void **state)
{
    enum { MANY = 1000 };
    static struct job jobs[MANY];
    (void)state;
    for (int i = 0; i < MANY; i++) {
        jobs[i] = (struct job){.n = i % 7};
        jobs[i].self = duda_fiber_new(stacks, count, &jobs[i]);
        assert_non_null(jobs[i].self);
    }
    for (int left = MANY; left > 0;)
        for (int i = 0; i < MANY; i++)
            if (jobs[i].self && duda_fiber_resume(jobs[i].self)) {
                duda_fiber_free(jobs[i].self);
                jobs[i].self = NULL;
                left--;
            }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(jobs[i].steps, i % 7);
    assert_true(duda_stack_pool_count_all(stacks) >= MANY);
}

static void nest(void *arg)
{
    struct job *j = arg, inner = {.n = 2};
    inner.self = duda_fiber_new(stacks, count, &inner);
    while (!duda_fiber_resume(inner.self))
        duda_fiber_yield(j->self);
    duda_fiber_free(inner.self);
    j->steps = inner.steps;
}

static void fiber_may_resume_another(void **state)
{
    struct job j = {0};
    (void)state;
    j.self = duda_fiber_new(stacks, nest, &j);
    assert_false(duda_fiber_resume(j.self));
    assert_false(duda_fiber_resume(j.self));
    assert_true(duda_fiber_resume(j.self));
    duda_fiber_free(j.self);
    assert_int_equal(j.steps, 2);
}

static void fiber_unfinished_can_be_freed(void **state)
{
    struct job j = {.n = 10};
    (void)state;
    for (int i = 0; i < 100; i++) {
        j.self = duda_fiber_new(stacks, count, &j);
        assert_false(duda_fiber_resume(j.self));
        duda_fiber_free(j.self);
    }
    j.self = duda_fiber_new(stacks, count, &j);
    duda_fiber_free(j.self);
}

static void stack_guard_is_below_stack(void **state)
{
    struct duda_stack *s = duda_stack_pool_acquire(stacks), *other = duda_stack_pool_acquire(stacks);
    (void)state;
    assert_ptr_equal(duda_stack_pool_find_by_guard(stacks, s->low - 1), s);
    assert_ptr_equal(duda_stack_pool_find_by_guard(stacks, other->low - 1), other);
    assert_null(duda_stack_pool_find_by_guard(stacks, s->low));
    assert_null(duda_stack_pool_find_by_guard(stacks, &s));
    duda_stack_pool_release(s);
    duda_stack_pool_release(other);
}

/* The kernel probes the address, so the test needs neither a signal handler nor a child process for each
 * probe. */
static bool can_be_read(int fd, const char *address)
{
    ssize_t n = write(fd, address, 1);
    assert_true(n == 1 || (n < 0 && errno == EFAULT));
    return n == 1;
}

/* The guard catches a frame of a megabyte even if only its far end is touched. */
static void stack_guard_covers_large_frames(void **state)
{
    struct duda_stack *s = duda_stack_pool_acquire(stacks);
    int fds[2];
    (void)state;
    assert_true(DUDA_STACK_POOL_GUARD >= 1 << 20 || sizeof(void *) == 4);
    assert_int_equal(pipe(fds), 0);
    for (size_t down = 1; down <= DUDA_STACK_POOL_GUARD; down += 4096) {
        assert_false(can_be_read(fds[1], s->low - down));
        assert_ptr_equal(duda_stack_pool_find_by_guard(stacks, s->low - down), s);
    }
    assert_false(can_be_read(fds[1], s->low - DUDA_STACK_POOL_GUARD));
    assert_ptr_equal(duda_stack_pool_find_by_guard(stacks, s->low - DUDA_STACK_POOL_GUARD), s);
    assert_ptr_not_equal(duda_stack_pool_find_by_guard(stacks, s->low - DUDA_STACK_POOL_GUARD - 1), s);
    close(fds[0]);
    close(fds[1]);
    duda_stack_pool_release(s);
}

/* Returns a value of /proc/self/status in kilobytes. */
static size_t value_of(const char *name)
{
    char line[256];
    size_t value = 0;
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtoul(line + strlen(name) + 1, NULL, 10);
    fclose(f);
    return value;
}

/* Runs in a child process, because the limit stays in force. Returns 0 if this many stacks can be
 * acquired, all with a guard. */
static int acquire_stacks_within(uint8_t resource, const char *used, size_t more, int n)
{
    int fds[2];
    struct rlimit limit = {.rlim_cur = (value_of(used) << 10) + more, .rlim_max = RLIM_INFINITY};
    if (pipe(fds) || setrlimit(resource, &limit))
        return 1;
    struct duda_stack_pool *own = duda_stack_pool_new(64 << 10);
    if (!own)
        return 1;
    for (int i = 0; i < n; i++) {
        struct duda_stack *s = duda_stack_pool_acquire(own);
        if (!s)
            return 2;
        if (can_be_read(fds[1], s->low - 1) || !can_be_read(fds[1], s->low) ||
            !duda_stack_pool_find_by_guard(own, s->low - 1))
            return 3;
    }
    return 0;
}

static void expect_within(uint8_t resource, const char *used, size_t more, int n)
{
    int status;
    pid_t pid = fork();
    if (!pid)
        _exit(acquire_stacks_within(resource, used, more, n));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Guards do not count as data, so the handlers of a group of services can use its whole memory limit
 * (RLIMIT_DATA). */
static void stack_guards_do_not_count_toward_data_limit(void **state)
{
    (void)state;
    expect_within(RLIMIT_DATA, "VmData:", 32 << 20, 256);
}

/* With full guards, 200 stacks would take 212 MB. */
static void stack_guards_shrink_under_address_space_limit(void **state)
{
    (void)state;
    expect_within(RLIMIT_AS, "VmSize:", 64 << 20, 200);
}

static void stack_overflow_hits_guard(void **state)
{
    struct duda_stack *s = duda_stack_pool_acquire(stacks);
    (void)state;
    pid_t pid = fork();
    if (!pid) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        *(volatile char *)(s->low - 1) = 1;
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    s->low[0] = 1;
    duda_stack_pool_release(s);
}

static int count_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    int n = 0;
    assert_non_null(maps);
    for (int c; (c = getc(maps)) != EOF;)
        n += c == '\n';
    fclose(maps);
    return n;
}

/* Returns whether the kernel supports guards without mappings (Linux 6.13 and later). Independent of the code
 * under test. */
static bool has_guards_without_mappings(void)
{
    enum { INSTALL = 102 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    bool has = madvise(p, page, INSTALL) == 0;
    munmap(p, page);
    return has;
}

/* If each guard and each stack were a mapping, the process would need 80,000, but it may have only 65,530
 * (vm.max_map_count). */
static void stack_guards_need_no_mappings(void **state)
{
    enum { MANY = 40000, MAPPINGS = 2000 };
    static struct duda_stack *all[MANY];
    int fds[2], before = count_mappings();
    (void)state;
    if (!has_guards_without_mappings()) {
        print_message("skipped: this kernel has no MADV_GUARD_INSTALL\n");
        skip();
    }
    assert_int_equal(pipe(fds), 0);
    for (int i = 0; i < MANY; i++)
        assert_non_null(all[i] = duda_stack_pool_acquire(stacks));
    assert_int_equal(duda_stack_pool_count_used(stacks), MANY);
    for (int i = 0; i < MANY; i++) {
        assert_false(can_be_read(fds[1], all[i]->low - 1));
        if (i % 100 == 0)
            assert_true(can_be_read(fds[1], all[i]->low));
    }
    assert_true(count_mappings() < before + MAPPINGS);
    for (int i = 0; i < MANY; i++)
        duda_stack_pool_release(all[i]);
    close(fds[0]);
    close(fds[1]);
}

static void acquire_stacks(struct duda_stack **all, int n)
{
    for (int i = 0; i < n; i++) {
        all[i] = duda_stack_pool_acquire(stacks);
        all[i]->low[0] = 1;
    }
}

static void drop_all(struct duda_stack **all, int n)
{
    for (int i = 0; i < n; i++)
        duda_stack_pool_release(all[i]);
}

static int count_cleared(struct duda_stack **all, int n)
{
    int n_cleared = 0;
    for (int i = 0; i < n; i++) {
        all[i] = duda_stack_pool_acquire(stacks);
        n_cleared += all[i]->low[0] == 0;
    }
    drop_all(all, n);
    return n_cleared;
}

static void stack_pool_releases_memory_of_free_stacks(void **state)
{
    enum { MANY = DUDA_STACK_POOL_WARM_MAX + 100 };
    static struct duda_stack *all[MANY];
    (void)state;
    acquire_stacks(all, MANY);
    drop_all(all, MANY);
    assert_int_equal(count_cleared(all, MANY), 100);
}

static void stack_pool_releases_memory_after_burst(void **state)
{
    enum { MANY = 300 };
    struct duda_stack *all[MANY];
    (void)state;
    acquire_stacks(all, MANY);
    drop_all(all, MANY);
    for (int i = 0; i < 2 * DUDA_STACK_POOL_SPAN; i++) {
        acquire_stacks(all, 10);
        drop_all(all, 10);
    }
    assert_int_equal(count_cleared(all, MANY), MANY - 10);
}

static void stack_size_is_limited(void **state)
{
    static const size_t sizes[] = {0, 1, 100000, DUDA_STACK_POOL_SIZE_MAX, (size_t)1 << 40};
    (void)state;
    for (size_t i = 0; i < MK_LEN(sizes); i++) {
        struct duda_stack_pool *s = duda_stack_pool_new(sizes[i]);
        struct duda_stack *one = duda_stack_pool_acquire(s);
        assert_non_null(one);
        assert_true(one->size >= DUDA_STACK_POOL_SIZE_MIN && one->size <= DUDA_STACK_POOL_SIZE_MAX);
        assert_true(one->size >= sizes[i] || sizes[i] > DUDA_STACK_POOL_SIZE_MAX);
        duda_stack_pool_release(one);
        duda_stack_pool_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(fiber_resumes_after_yield, setup_stacks, teardown_stacks),
        fixture_test(fiber_many_interleave, setup_stacks, teardown_stacks),
        fixture_test(fiber_may_resume_another, setup_stacks, teardown_stacks),
        fixture_test(fiber_unfinished_can_be_freed, setup_stacks, teardown_stacks),
        fixture_test(stack_guard_is_below_stack, setup_stacks, teardown_stacks),
        fixture_test(stack_guard_covers_large_frames, setup_stacks, teardown_stacks),
        cmocka_unit_test(stack_guards_do_not_count_toward_data_limit),
        cmocka_unit_test(stack_guards_shrink_under_address_space_limit),
        fixture_test(stack_overflow_hits_guard, setup_stacks, teardown_stacks),
        fixture_test(stack_guards_need_no_mappings, setup_stacks, teardown_stacks),
        fixture_test(stack_pool_releases_memory_of_free_stacks, setup_stacks, teardown_stacks),
        fixture_test(stack_pool_releases_memory_after_burst, setup_stacks, teardown_stacks),
        cmocka_unit_test(stack_size_is_limited),
    };
    print_message("stacks change by %s\n", duda_switch_name);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
