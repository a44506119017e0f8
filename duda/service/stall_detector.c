/* SPDX-License-Identifier: Apache-2.0 */
#include "service/stall_detector.h"

#include <errno.h>
#include <monkey/clock.h>
#include <monkey/mem.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "service/crash_report.h"
#include "service/thread_usage.h"

enum { TICK_MS = 100, DEV_TICK_MS = 25, LAZY_TICKS = 20, UNCLEAR_TICKS = 5, PROBLEM_SIZE = 256 };

static const char stall_problem[] =
    "has blocked the event loop for more than 500 ms: compute in duda_offload(), "
    "and wait with functions of Duda";

struct duda_stall_detector {
    const struct duda_worker_ctx *worker_ctx;
    pthread_t loop, thread;
    clockid_t clock;                /* CPU-time clock of the loop's thread */
    struct duda_thread_files files; /* only for warnings */
    unsigned tick_ms;
    pthread_mutex_t inspection;
    atomic_bool inspects; /* the thread is reading the stack of the handler, which must not return now */
    int wake;        /* eventfd: written when the thread sleeps and a handler starts, or to stop the thread */
    atomic_uint run; /* odd while a handler runs; unique for each run */
    atomic_bool sleeps, ends;
    _Atomic unsigned suspect, held; /* the run to report, and the last reported run */
};

static __thread struct duda_stall_detector *here;

/* The signal action belongs to the process, which may have several loops, and may have had another action
 * before. */
static struct {
    pthread_mutex_t lock;
    unsigned users;
    struct sigaction before;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Runs in the loop's thread, interrupting the handler anywhere. */
static void on_stall_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    int e = errno;
    struct duda_stall_detector *h = here;
    unsigned run = h ? atomic_load(&h->run) : 0;
    if (run % 2 && run == atomic_load(&h->suspect) && atomic_load(&h->held) != run) {
        duda_crash_report_write(stall_problem, context);
        atomic_store(&h->held, run);
    }
    errno = e;
}

static bool install_stall_signal(void)
{
    const struct sigaction ours = {.sa_sigaction = on_stall_signal,
                                   .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    pthread_mutex_lock(&shared.lock);
    bool done = shared.users || !sigaction(SIGURG, &ours, &shared.before);
    shared.users += done;
    pthread_mutex_unlock(&shared.lock);
    return done;
}

static void restore_stall_signal(void)
{
    pthread_mutex_lock(&shared.lock);
    if (--shared.users == 0)
        sigaction(SIGURG, &shared.before, NULL);
    pthread_mutex_unlock(&shared.lock);
}

static void wake_detector(const struct duda_stall_detector *h)
{
    (void)eventfd_write(h->wake, 1);
}

/* Waits one tick with poll(), whose timeout uses a monotonic clock. */
static bool wait_one_tick(struct duda_stall_detector *h)
{
    struct pollfd p = {.fd = h->wake, .events = POLLIN};
    eventfd_t n;
    if (poll(&p, 1, (int)h->tick_ms) > 0)
        (void)eventfd_read(h->wake, &n);
    return !atomic_load(&h->ends);
}

static void sleep_until_next_run(struct duda_stall_detector *h, unsigned run)
{
    eventfd_t n;
    atomic_store(&h->sleeps, true);
    if (atomic_load(&h->run) == run) /* otherwise a run began before the thread could see the flag */
        while (eventfd_read(h->wake, &n) && errno == EINTR)
            continue;
    atomic_store(&h->sleeps, false);
}

/* Returns the CPU time of another thread, for which monkey/clock.h has no function. */
static uint64_t loop_cpu_time_us(const struct duda_stall_detector *h)
{
    struct timespec t = {0};
    (void)clock_gettime(h->clock, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* This thread writes the report itself: a signal to the loop's thread would interrupt the blocking call,
 * which would fail with EINTR or return early. The loop uses the opposite order: it does not return from the
 * handler before this function ends. */
static void report_blocked_handler(struct duda_stall_detector *h, unsigned run)
{
    pthread_mutex_lock(&h->inspection);
    atomic_store(&h->inspects, true);
    if (atomic_load(&h->run) == run) {
        duda_crash_report_write_blocked(h->worker_ctx, stall_problem);
        atomic_store(&h->held, run);
    }
    atomic_store(&h->inspects, false);
    pthread_mutex_unlock(&h->inspection);
}

/* Interrupts the handler, which writes the report. */
static void signal_computing_handler(struct duda_stall_detector *h, unsigned run)
{
    atomic_store(&h->suspect, run);
    pthread_kill(h->loop, SIGURG);
}

/* If the state of the thread is unknown: a thread that used half of the tick is computing, so a signal cannot interrupt a call. A thread that used
 * almost no time is blocked. In between, it waits for a CPU or makes many short calls: later ticks decide,
 * and the last one sends a signal, which is harmless for short calls. Returns true if the stall was
 * reported. */
static bool report_stalled_handler(struct duda_stall_detector *h, unsigned run, uint64_t used,
                                   bool is_last_chance)
{
    bool is_unclear = used > TICK_MS * 1000 / 20 && used < TICK_MS * 1000 / 2;
    if (is_unclear && !is_last_chance)
        return false;
    if (used > TICK_MS * 1000 / 20)
        signal_computing_handler(h, run);
    else
        report_blocked_handler(h, run);
    return true;
}

/* ---- In development ---- */

/* The current run of a handler. */
struct observed_run {
    unsigned run, warned_run;
    struct duda_thread_sample last;
    struct duda_thread_usage usage; /* since the first tick of the run */
};

static void observe_run(const struct duda_stall_detector *h, struct observed_run *o, unsigned run,
                        uint64_t cpu_us)
{
    struct duda_thread_sample sample = {.time_us = mk_clock_us(), .cpu_us = cpu_us};
    duda_thread_files_read(&h->files, &sample);
    if (run == o->run)
        duda_thread_usage_add(&o->usage, &o->last, &sample, h->tick_ms * 1000);
    else
        o->usage = (struct duda_thread_usage){0};
    o->run = run;
    o->last = sample;
}

static void print_warning(struct duda_stall_detector *h, unsigned run, const char *problem)
{
    pthread_mutex_lock(&h->inspection);
    atomic_store(&h->inspects, true);
    if (atomic_load(&h->run) == run)
        duda_crash_report_warn(h->worker_ctx, problem);
    atomic_store(&h->inspects, false);
    pthread_mutex_unlock(&h->inspection);
}

/* Warns once about a handler that blocks the loop for DUDA_SLOW_MS, or that waits DUDA_STALL_MS for a
 * processor, which explains a slow response but is no fault of the handler. */
static void warn_about_slow_run(struct duda_stall_detector *h, struct observed_run *o)
{
    char text[PROBLEM_SIZE];
    struct mk_buf problem = mk_buf_fixed(text, sizeof text - 1);
    enum duda_usage_verdict verdict =
        duda_thread_usage_judge(&o->usage, DUDA_SLOW_MS * 1000, DUDA_STALL_MS * 1000);
    if (o->run % 2 == 0 || o->run == o->warned_run || verdict == DUDA_USAGE_FINE)
        return;
    o->warned_run = o->run;
    if (verdict == DUDA_USAGE_BLOCKS)
        mk_buf_addf(&problem, "blocks the event loop for more than %d ms (", DUDA_SLOW_MS);
    else
        mk_buf_addf(&problem, "is slow because this machine is busy (");
    duda_thread_usage_format(&o->usage, &problem);
    mk_buf_add(&problem, MK_STR("); other requests wait"));
    text[problem.len] = '\0';
    print_warning(h, o->run, text);
}

/* Reports a stall of which the thread itself is the cause. Its state shows whether a signal would interrupt a
 * call. Returns false if there is none, or not yet. */
static bool report_observed_stall(struct duda_stall_detector *h, const struct observed_run *o)
{
    if (duda_thread_usage_own_us(&o->usage) < DUDA_STALL_MS * 1000)
        return false;
    if (o->last.state == DUDA_THREAD_BLOCKED)
        report_blocked_handler(h, o->run);
    else
        signal_computing_handler(h, o->run);
    return true;
}

/* ---- The thread ---- */

static void *watch_thread_main(void *arg)
{
    struct duda_stall_detector *h = arg;
    const unsigned ratio = TICK_MS / h->tick_ms; /* stalls are judged by the CPU time used in TICK_MS */
    unsigned last = 0, same = 0, reported_run = 0, ticks = 0;
    struct observed_run observed = {.run = 0};
    uint64_t window = loop_cpu_time_us(h);
    while (wait_one_tick(h)) {
        unsigned run = atomic_load(&h->run), due = DUDA_STALL_MS / h->tick_ms;
        uint64_t now = loop_cpu_time_us(h);
        same = run == last ? same + 1 : 0;
        last = run;
        if (h->tick_ms == DEV_TICK_MS) {
            observe_run(h, &observed, run, now);
            warn_about_slow_run(h, &observed);
        }
        if (run % 2 == 0 && same >= LAZY_TICKS)
            sleep_until_next_run(h, run);
        if (++ticks % ratio)
            continue;
        bool is_due = run % 2 && same >= due && run != reported_run;
        bool is_reported = is_due && (observed.last.state != DUDA_THREAD_UNKNOWN
                                          ? report_observed_stall(h, &observed)
                                          : report_stalled_handler(h, run, now - window,
                                                                   same >= due + UNCLEAR_TICKS * ratio));
        if (is_reported)
            reported_run = run;
        window = now;
    }
    return NULL;
}

static bool start_watch_thread(struct duda_stall_detector *h)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* the new thread must not receive signals */
    int e = pthread_create(&h->thread, NULL, watch_thread_main, h);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return !e;
}

static bool stall_detector_init(struct duda_stall_detector *h)
{
    h->wake = eventfd(0, EFD_CLOEXEC);
    if (h->wake < 0)
        return false;
    pthread_mutex_init(&h->inspection, NULL);
    if (!pthread_getcpuclockid(h->loop, &h->clock) && install_stall_signal()) {
        if (start_watch_thread(h))
            return true;
        restore_stall_signal();
    }
    close(h->wake);
    return false;
}

struct duda_stall_detector *duda_stall_detector_start(const struct duda_worker_ctx *worker_ctx, bool warns)
{
    struct duda_stall_detector *h = mk_mem_zalloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->worker_ctx = worker_ctx;
    h->loop = pthread_self();
    h->tick_ms = warns ? DEV_TICK_MS : TICK_MS;
    h->files = (struct duda_thread_files){-1, -1};
    if (warns)
        duda_thread_files_open(&h->files);
    here = h;
    if (stall_detector_init(h))
        return h;
    here = NULL;
    duda_thread_files_close(&h->files);
    mk_mem_free(h);
    return NULL;
}

void duda_stall_detector_stop(struct duda_stall_detector *h)
{
    if (!h)
        return;
    atomic_store(&h->ends, true);
    wake_detector(h);
    pthread_join(h->thread, NULL);
    restore_stall_signal();
    here = NULL;
    close(h->wake);
    duda_thread_files_close(&h->files);
    mk_mem_free(h);
}

void duda_stall_detector_enter(struct duda_stall_detector *h)
{
    if (!h)
        return;
    /* This order matters: the thread uses the opposite order, so at least one of the two sees the other's
     * write. */
    atomic_store(&h->run, atomic_load_explicit(&h->run, memory_order_relaxed) + 1);
    if (atomic_load(&h->sleeps) && atomic_exchange(&h->sleeps, false))
        wake_detector(h);
}

bool duda_stall_detector_leave(struct duda_stall_detector *h)
{
    if (!h)
        return false;
    unsigned run = atomic_load_explicit(&h->run, memory_order_relaxed);
    atomic_store(&h->run, run + 1);
    if (atomic_load(&h->inspects)) { /* the thread inspects this stack */
        pthread_mutex_lock(&h->inspection);
        pthread_mutex_unlock(&h->inspection);
    }
    return atomic_load_explicit(&h->held, memory_order_relaxed) == run;
}
