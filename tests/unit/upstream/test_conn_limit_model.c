/* SPDX-License-Identifier: Apache-2.0 */
/* Processes claim, release, wait for and hand over slots at random, as pools do; the test kills them at
 * random instructions, replaces them, and starts others with a different limit. No process has a timer, so no
 * process makes up for a lost wake-up: at rest, no request may wait while a slot is free that it may use. */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd.h"
#include "unit/upstream/fake_worker.h"

enum { ACTORS = 4, PROCESSES_MAX = 1000, HELD_MAX = 6, WAITING_MAX = 6, CLIENTS = 5, MAX_MAX = 6 };

struct request {
    uint64_t since_ms, client;
};

/* State that a process publishes for the checks. */
struct process {
    uint32_t is_doomed;  /* the process may be dead already */
    uint32_t is_asleep;  /* the process waits for an event */
    uint32_t leaves;     /* the process must exit */
    uint32_t seen_exits; /* number of exits of other processes that it has seen */
    uint32_t n_waiting, n_held;
    struct request waiting[WAITING_MAX];
    unsigned held[HELD_MAX];
};

struct model {
    uint32_t rests; /* at rest, no process starts new work */
    uint32_t max, share;
    uint32_t n_exits;
    uint32_t holders[MK_CONN_LIMIT_MAX]; /* the process that holds each slot, numbered from 1 */
    uint32_t n_processes;
    uint32_t n_claims;
    uint32_t error; /* line number in this file */
    struct process processes[PROCESSES_MAX];
};

static struct model *model;

static struct mk_conn_limit limit;

#define LOAD(p)     __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)
#define EXPECT(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            STORE(&model->error, (uint32_t)__LINE__);                                                        \
    } while (0)

/* xorshift64 */
static unsigned pick(uint64_t *random, unsigned n)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (unsigned)(*random >> 33) % n;
}

static struct mk_conn_limit_rule rule(void)
{
    return (struct mk_conn_limit_rule){
        .max = LOAD(&model->max), .share = LOAD(&model->share), .wait_ms = 1000000};
}

/* ---- Worker process ---- */

struct actor {
    struct process *me;
    uint32_t id;
    unsigned row;
    uint64_t random;
};

static uint64_t since_of_first(const struct actor *a)
{
    const struct mk_conn_limit_rule r = rule();
    for (unsigned i = 0; i < a->me->n_waiting; i++)
        if (!mk_conn_limit_is_share_used_up(&limit, &r, a->me->waiting[i].client))
            return a->me->waiting[i].since_ms;
    return 0;
}

static void show(const struct actor *a)
{
    const struct mk_conn_limit_rule r = rule();
    struct mk_conn_limit_waiter shown[MK_CONN_LIMIT_WAITERS] = {{0, 0}, {0, 0}};
    bool hides = false;
    for (unsigned i = 0; i < a->me->n_waiting; i++) {
        const struct request *w = &a->me->waiting[i];
        if (!shown[0].since_ms)
            shown[0] = (struct mk_conn_limit_waiter){w->since_ms, w->client};
        else if (w->client == shown[0].client || (shown[1].since_ms && w->client == shown[1].client))
            continue;
        else if (!shown[1].since_ms && !mk_conn_limit_is_share_used_up(&limit, &r, w->client))
            shown[1] = (struct mk_conn_limit_waiter){w->since_ms, w->client};
        else
            hides = true;
    }
    mk_conn_limit_publish_waiters(&limit, 0, a->row, shown, hides);
}

static void wake_older(const struct actor *a, bool all)
{
    const struct mk_conn_limit_rule r = rule();
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    uint64_t since = since_of_first(a);
    int row = mk_conn_limit_find_older_waiter(&limit, &r, a->row, since ? since : UINT64_MAX);
    if (row >= 0)
        mk_conn_limit_wake_row(&limit, 0, (unsigned)row);
    else if (!since && all)
        mk_conn_limit_wake_unpublished(&limit, 0, a->row);
}

static void pass_on(const struct actor *a, bool has_changed)
{
    const struct mk_conn_limit_rule r = rule();
    if (mk_conn_limit_has_free_slot(&limit, &r))
        wake_older(a, has_changed);
}

/* Records that this process holds the slot. Expects that no living process held it before. */
static void claim_slot(const struct actor *a, unsigned slot, unsigned max)
{
    uint32_t old = __atomic_exchange_n(&model->holders[slot], a->id + 1, __ATOMIC_SEQ_CST);
    EXPECT(slot < max);
    EXPECT(!old || LOAD(&model->processes[old - 1].is_doomed));
    __atomic_fetch_add(&model->n_claims, 1, __ATOMIC_RELAXED);
    a->me->held[a->me->n_held] = slot;
    STORE(&a->me->n_held, a->me->n_held + 1);
}

static void release(const struct actor *a, unsigned slot)
{
    STORE(&model->holders[slot], 0);
    mk_conn_limit_release_slot(&limit, 0, slot);
    wake_older(a, true);
}

/* Returns 0 with a slot, -1 if the request must wait for a slot, -2 if it must wait for its share. */
static int acquire(const struct actor *a, const struct request *w)
{
    const struct mk_conn_limit_rule r = rule();
    unsigned slot;
    if (a->me->n_held == HELD_MAX)
        return -1;
    if (mk_conn_limit_is_share_used_up(&limit, &r, w->client))
        return -2;
    if (!w->since_ms && since_of_first(a))
        return -1;
    if (mk_conn_limit_find_older_waiter(&limit, &r, a->row, w->since_ms) >= 0 ||
        !mk_conn_limit_acquire_slot(&limit, 0, r.max, a->row, &slot))
        return -1;
    if (!mk_conn_limit_assign_slot(&limit, &r, slot, w->client)) {
        mk_conn_limit_release_slot(&limit, 0, slot);
        wake_older(a, true);
        return -1;
    }
    claim_slot(a, slot, r.max);
    return 0;
}

static void remove_waiting(const struct actor *a, unsigned i)
{
    struct process *me = a->me;
    memmove(&me->waiting[i], &me->waiting[i + 1], (me->n_waiting - i - 1) * sizeof me->waiting[0]);
    STORE(&me->n_waiting, me->n_waiting - 1);
    show(a);
}

static void serve(const struct actor *a)
{
    unsigned before = a->me->n_waiting;
    for (unsigned i = 0; i < a->me->n_waiting;) {
        int e = acquire(a, &a->me->waiting[i]);
        if (e == 0)
            remove_waiting(a, i);
        else if (e == -2)
            i++;
        else
            break;
    }
    pass_on(a, a->me->n_waiting != before);
}

static void request(struct actor *a)
{
    struct process *me = a->me;
    struct request w = {.client = pick(&a->random, CLIENTS)}; /* client 0: no share limits its requests */
    if (me->n_held == HELD_MAX || me->n_waiting == WAITING_MAX || acquire(a, &w) == 0)
        return;
    w.since_ms = mk_clock_ms();
    me->waiting[me->n_waiting] = w;
    STORE(&me->n_waiting, me->n_waiting + 1);
    show(a);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    serve(a);
}

static void release_slot(struct actor *a)
{
    struct process *me = a->me;
    if (!me->n_held)
        return;
    unsigned i = pick(&a->random, me->n_held), slot = me->held[i];
    me->held[i] = me->held[me->n_held - 1];
    STORE(&me->n_held, me->n_held - 1);
    release(a, slot);
    serve(a);
}

/* Hands the connection over to a waiting request. */
static void hand_over(struct actor *a)
{
    struct process *me = a->me;
    const struct mk_conn_limit_rule r = rule();
    if (!me->n_held)
        return;
    unsigned slot = me->held[0];
    mk_conn_limit_unassign_slot(&limit, 0, slot);
    for (unsigned i = 0; i < me->n_waiting && slot < r.max; i++) {
        const struct request *w = &me->waiting[i];
        if (mk_conn_limit_is_share_used_up(&limit, &r, w->client))
            continue;
        if (mk_conn_limit_find_older_waiter(&limit, &r, a->row, w->since_ms) >= 0 ||
            !mk_conn_limit_assign_slot(&limit, &r, slot, w->client))
            break;
        remove_waiting(a, i);
        pass_on(a, true);
        return;
    }
    me->held[0] = me->held[me->n_held - 1];
    STORE(&me->n_held, me->n_held - 1);
    release(a, slot);
    serve(a);
}

static void cancel(struct actor *a)
{
    if (!a->me->n_waiting)
        return;
    remove_waiting(a, pick(&a->random, a->me->n_waiting));
    pass_on(a, true);
}

static void step(struct actor *a)
{
    static void (*const steps[])(struct actor *) = {request,      request,      request,      request,
                                                    release_slot, release_slot, release_slot, release_slot,
                                                    cancel,       hand_over};
    steps[pick(&a->random, MK_LEN(steps))](a);
}

static void listen_to_others(struct actor *a)
{
    uint64_t woken[MK_CONN_LIMIT_WORDS];
    uint32_t exits = LOAD(&model->n_exits);
    if (exits != a->me->seen_exits)
        mk_conn_limit_free_dead_rows(&limit, a->row);
    STORE(&a->me->seen_exits, exits);
    if (mk_conn_limit_pop_woken(&limit, a->row, woken)) {
        show(a);
        serve(a);
    }
}

static _Noreturn void leave(const struct actor *a)
{
    STORE(&a->me->n_waiting, 0);
    STORE(&a->me->is_doomed, 1);
    while (a->me->n_held)
        release(a, a->me->held[--a->me->n_held]);
    mk_conn_limit_release_row(&limit, a->row);
    _exit(0);
}

static _Noreturn void act(uint32_t id, uint64_t seed)
{
    struct actor a = {.me = &model->processes[id], .id = id, .random = seed};
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    EXPECT(epoll >= 0 && mk_conn_limit_acquire_row(&limit, &a.row));
    EXPECT(epoll_ctl(epoll, EPOLL_CTL_ADD, mk_conn_limit_wake_fd(&limit, a.row), &event) == 0);
    mk_conn_limit_wake_waiters(&limit, 0); /* the new limit may allow more slots */
    for (;;) {
        bool rests = LOAD(&model->rests);
        STORE(&a.me->is_asleep, rests);
        (void)epoll_wait(epoll, &event, 1, rests ? -1 : 0);
        STORE(&a.me->is_asleep, 0);
        listen_to_others(&a);
        if (LOAD(&a.me->leaves))
            leave(&a);
        if (!rests)
            step(&a);
    }
}

/* ---- Master process ---- */

static struct {
    pid_t pid;
    uint32_t id;
} running[ACTORS];
static uint64_t random_state;

static void wake_all(void)
{
    static const uint64_t one = 1;
    for (unsigned i = 0; i < MK_CONN_LIMIT_EVENTS; i++)
        assert_int_equal(write(limit.events[i], &one, sizeof one), sizeof one);
}

static void start_actor(unsigned i)
{
    uint64_t seed = random_state + 1 + i;
    (void)pick(&random_state, 2);
    assert_true(model->n_processes < PROCESSES_MAX);
    running[i].id = model->n_processes++;
    running[i].pid = fork();
    assert_true(running[i].pid >= 0);
    if (running[i].pid == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
        act(running[i].id, seed);
}

static void remove_dead(unsigned i)
{
    assert_int_equal(waitpid(running[i].pid, NULL, 0), running[i].pid);
    running[i].pid = 0;
    __atomic_fetch_add(&model->n_exits, 1, __ATOMIC_SEQ_CST);
    wake_all();
}

static void kill_actor(unsigned i)
{
    if (!running[i].pid)
        return;
    STORE(&model->processes[running[i].id].is_doomed, 1);
    kill(running[i].pid, SIGKILL);
    remove_dead(i);
}

/* Reloads: changes the limit and replaces a process, which exits cleanly. */
static void reload(unsigned i)
{
    STORE(&model->max, 1 + pick(&random_state, MAX_MAX));
    STORE(&model->share, LOAD(&model->max) / 2 + LOAD(&model->max) % 2);
    if (running[i].pid) {
        STORE(&model->processes[running[i].id].leaves, 1);
        wake_all();
        remove_dead(i);
    }
    start_actor(i);
}

static bool model_is_at_rest(void)
{
    for (unsigned i = 0; i < ACTORS; i++) {
        const struct process *l = &model->processes[running[i].id];
        if (running[i].pid && (!LOAD(&l->is_asleep) || LOAD(&l->seen_exits) != LOAD(&model->n_exits)))
            return false;
    }
    for (unsigned row = 0; row < LOAD(&limit.memory->n_rows); row++)
        if (LOAD(&limit.memory->rows[row].is_taken) && LOAD(&limit.memory->rows[row].woken[0]))
            return false;
    return true;
}

static void wait_until_rest(void)
{
    STORE(&model->rests, 1);
    for (unsigned i = 0, quiet = 0; quiet < 3; i++) {
        assert_true(i < 20000);
        quiet = model_is_at_rest() ? quiet + 1 : 0;
        usleep(500);
    }
}

static unsigned count_of(uint64_t client, unsigned max)
{
    unsigned n = 0;
    for (unsigned i = 0; i < max; i++)
        n += mk_conn_limit_backend(&limit, 0)->clients[i] == client;
    return n;
}

static void check_at_rest(void)
{
    const struct mk_conn_limit_rule r = rule();
    unsigned n_held = 0, n_taken = 0;
    if (!running[0].pid)
        start_actor(0); /* without a process, nothing releases the slots */
    wait_until_rest();
    for (unsigned i = 0; i < ACTORS; i++) {
        const struct process *l = &model->processes[running[i].id];
        for (unsigned k = 0; running[i].pid && k < l->n_waiting; k++)
            assert_false(l->n_held < HELD_MAX && mk_conn_limit_has_free_slot(&limit, &r) &&
                         !mk_conn_limit_is_share_used_up(&limit, &r, l->waiting[k].client));
        n_held += running[i].pid ? l->n_held : 0;
    }
    for (unsigned i = 0; i < MK_CONN_LIMIT_MAX; i++)
        n_taken += mk_conn_limit_backend(&limit, 0)->slots[i] != 0;
    assert_int_equal(n_taken, n_held); /* the slots of dead processes are free */
    assert_int_equal(model->error, 0);
    STORE(&model->rests, 0);
    wake_all();
}

static void setup(void)
{
    model = new_shared(sizeof *model);
    limit = (struct mk_conn_limit){0};
    assert_true(mk_conn_limit_init(&limit, NULL) && mk_conn_limit_open_fds(&limit, NULL));
    mk_conn_limit_reset_backend(&limit, 0);
    memset(running, 0, sizeof running);
}

static void teardown(void)
{
    for (unsigned i = 0; i < ACTORS; i++)
        if (running[i].pid) {
            kill(running[i].pid, SIGKILL);
            (void)waitpid(running[i].pid, NULL, 0);
        }
    munmap(model, sizeof *model);
    munmap(limit.memory, sizeof *limit.memory);
    mk_fd_close(&limit.lock_fd);
    for (unsigned i = 0; i < MK_CONN_LIMIT_EVENTS; i++)
        mk_fd_close(&limit.events[i]);
}

static void event_of_a_round(void)
{
    unsigned i = pick(&random_state, ACTORS), what = pick(&random_state, 10);
    if (what < 4)
        kill_actor(i);
    else if (what < 5)
        reload(i);
    else if (what < 8 && !running[i].pid)
        start_actor(i);
    usleep(200 + pick(&random_state, 3000));
}

static void run_round(uint64_t seed)
{
    random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    STORE(&model->max, 4);
    STORE(&model->share, 2);
    for (unsigned i = 0; i < ACTORS; i++)
        start_actor(i);
    for (unsigned n = 0; n < 60; n++) {
        event_of_a_round();
        if (n % 6 == 5)
            check_at_rest();
    }
    for (unsigned i = 0; i < ACTORS; i++)
        kill_actor(i);
}

/* A joining worker frees the slots of dead workers. */
static void expect_all_free(void)
{
    const struct mk_conn_limit_backend *b = mk_conn_limit_backend(&limit, 0);
    unsigned row;
    assert_true(mk_conn_limit_acquire_row(&limit, &row));
    mk_conn_limit_free_dead_rows(&limit, row);
    for (unsigned i = 0; i < MK_CONN_LIMIT_MAX; i++)
        assert_true(!b->slots[i] && !b->clients[i]);
    for (unsigned i = 0; i < MK_UPSTREAM_WORKERS; i++)
        assert_true(!b->waiters[i][0].since_ms && !b->waiters[i][1].since_ms);
    mk_conn_limit_release_row(&limit, row);
    for (unsigned i = 0; i < limit.memory->n_rows; i++)
        assert_int_equal(limit.memory->rows[i].is_taken, 0);
}

static void conn_limit_random_kills_leave_no_request_waiting_for_free_slot(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        run_round(seed);
        expect_all_free();
    }
    assert_true(model->n_claims > 100);
}

static void conn_limit_random_clients_stay_within_share(void **state)
{
    (void)state;
    random_state = 99;
    STORE(&model->max, 5);
    STORE(&model->share, 1);
    for (unsigned i = 0; i < ACTORS; i++)
        start_actor(i);
    for (unsigned n = 0; n < 60; n++) {
        usleep(5000);
        wait_until_rest();
        for (uint64_t client = 1; client < CLIENTS; client++)
            assert_true(count_of(client, 5) <= 1);
        check_at_rest();
    }
}

/* ---- Order ---- */

static uint32_t *order; /* shared memory: the number of turns so far, then the process of each turn */

static _Noreturn void wait_for_turn(uint32_t me)
{
    struct process process = {0};
    const struct actor a = {.me = &process, .id = me};
    struct actor mine = a;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    EXPECT(mk_conn_limit_acquire_row(&limit, &mine.row) &&
           epoll_ctl(epoll, EPOLL_CTL_ADD, mk_conn_limit_wake_fd(&limit, mine.row), &event) == 0);
    process.waiting[0].since_ms = mk_clock_ms();
    process.n_waiting = 1;
    show(&mine);
    serve(&mine);
    __atomic_fetch_add(&model->n_processes, 1, __ATOMIC_SEQ_CST);
    while (process.n_waiting) {
        (void)epoll_wait(epoll, &event, 1, -1);
        listen_to_others(&mine);
    }
    STORE(&order[1 + __atomic_fetch_add(&order[0], 1, __ATOMIC_SEQ_CST)], me);
    release(&mine, process.held[0]);
    for (;;)
        pause();
}

/* Each process releases its slot at once, which wakes the next process. */
static void conn_limit_workers_are_served_in_waiting_order(void **state)
{
    unsigned row, slot;
    (void)state;
    order = new_shared(4096);
    STORE(&model->max, 1);
    assert_true(mk_conn_limit_acquire_row(&limit, &row) &&
                mk_conn_limit_acquire_slot(&limit, 0, 1, row, &slot));
    for (uint32_t i = 0; i < ACTORS; i++) {
        running[i].pid = fork();
        if (running[i].pid == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
            wait_for_turn((i * 3 + 1) % ACTORS);
        for (unsigned k = 0; LOAD(&model->n_processes) <= i && k < 10000; k++)
            usleep(500);
        usleep(20000); /* longer than the clock resolution and timer slack */
    }
    mk_conn_limit_release_slot(&limit, 0, slot);
    const struct mk_conn_limit_rule r = rule();
    int next = mk_conn_limit_find_older_waiter(&limit, &r, row, UINT64_MAX);
    assert_true(next >= 0);
    mk_conn_limit_wake_row(&limit, 0, (unsigned)next);
    for (unsigned k = 0; LOAD(&order[0]) < ACTORS && k < 10000; k++)
        usleep(500);
    for (uint32_t i = 0; i < ACTORS; i++)
        assert_int_equal(LOAD(&order[1 + i]), (i * 3 + 1) % ACTORS);
    assert_int_equal(model->error, 0);
    munmap(order, 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(conn_limit_random_kills_leave_no_request_waiting_for_free_slot, setup, teardown),
        fixture_test(conn_limit_random_clients_stay_within_share, setup, teardown),
        fixture_test(conn_limit_workers_are_served_in_waiting_order, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
