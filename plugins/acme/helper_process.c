/* SPDX-License-Identifier: Apache-2.0 */
#include "helper_process.h"

#include <errno.h>
#include <monkey/mem.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FIRST_MS = 300,  /* delay of the first run; a `monkey explain` process exits before it */
    BUSY_MS = 10000, /* retry delay while the helper of an older configuration has the lock */
    AGAIN_MS = 10000,
    AGAIN_MAX_MS = 3600 * 1000,
    LOOK_S = 12 * 3600,       /* maximum interval between two runs, in case the clock is set */
    RUN_MS = 4 * 3600 * 1000, /* each step of a run has a timeout, so a longer run is a bug */
    EXIT_BUSY = 75,
};

struct acme_helper_process {
    struct mk_worker *worker;
    const struct acme_helper_job *job;
    struct mk_timer timer;       /* time of the next start; while the helper runs, its timeout */
    struct acme_helper_run *run; /* NULL: none */
    void (*on_due)(void *ctx, mk_str name);
    void *ctx;
    bool has_run;
    uint32_t again_ms;
    uint64_t next_ms; /* time of the next run, by the worker's clock */
    uint64_t next_s;  /* delay until the next run, as the helper requested; 0: none yet */
};

/* ---- End ---- */

static void set_timer(struct acme_helper_process *r, uint64_t ms)
{
    r->next_ms = mk_worker_now_ms(r->worker) + ms;
    mk_timer_set(&r->timer, r->worker, (uint32_t)ms);
}

static void schedule_retry(struct acme_helper_process *r)
{
    uint32_t by_chance;
    mk_random(&by_chance, sizeof by_chance);
    set_timer(r, r->again_ms + by_chance % (r->again_ms / 4));
    r->again_ms = r->again_ms * 2 > AGAIN_MAX_MS ? AGAIN_MAX_MS : r->again_ms * 2;
}

static void report_exit_status(const struct acme_helper_process *r, int status)
{
    const char *program = r->job->program;
    const char *state = r->job->folder;
    if (status == -EACCES && access(state, R_OK | W_OK | X_OK) < 0)
        mk_worker_log(
            r->worker, MK_LOG_ERROR,
            "acme: workers cannot access the folder %s: %s; the folder or one above it does not admit them",
            state, strerror(errno));
    else if (status < 0)
        mk_worker_log(r->worker, MK_LOG_ERROR, "acme: cannot start %s: %s", program, strerror(-status));
    else if (WIFSIGNALED(status))
        mk_worker_log(r->worker, MK_LOG_ERROR, "acme: %s was killed by signal %d (%s)", program,
                      WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        mk_worker_log(r->worker, MK_LOG_ERROR, "acme: %s exited with status %d", program,
                      WEXITSTATUS(status));
}

static void on_helper_exit(void *ctx, int status)
{
    struct acme_helper_process *r = ctx;
    r->run = NULL;
    r->has_run = true;
    bool has_ended = status >= 0 && WIFEXITED(status);
    if (has_ended && WEXITSTATUS(status) == 0 && r->next_s) {
        r->again_ms = AGAIN_MS;
        set_timer(r, (r->next_s < LOOK_S ? r->next_s : LOOK_S) * 1000);
    } else if (has_ended && WEXITSTATUS(status) == EXIT_BUSY) {
        set_timer(r, BUSY_MS);
    } else {
        report_exit_status(r, status);
        schedule_retry(r);
    }
}

/* ---- Start ---- */

static void on_helper_report(void *ctx, enum acme_helper_report report, mk_str text)
{
    struct acme_helper_process *r = ctx;
    uint64_t n;
    if (report == ACME_HELPER_NEXT && mk_num_parse(text, &n))
        r->next_s = n ? n : 1;
    else if (report == ACME_HELPER_DUE && r->on_due)
        r->on_due(r->ctx, text);
    else if (report == ACME_HELPER_DELAYED && !r->has_run)
        mk_worker_log(r->worker, MK_LOG_WARN, "acme: %.*s", MK_STR_ARG(text));
}

static bool start_helper(struct acme_helper_process *r)
{
    r->next_s = 0;
    r->run = acme_helper_run_start(r->worker, r->job, MK_STR_NULL, on_helper_report, on_helper_exit, r);
    return r->run;
}

static void on_start_timer(struct mk_timer *t)
{
    struct acme_helper_process *r = MK_CONTAINER(t, struct acme_helper_process, timer);
    if (r->run) {
        acme_helper_run_time_out(r->run);
    } else if (mk_worker_is_draining(r->worker)) {
        return; /* its successor has its own helper process */
    } else if (start_helper(r)) {
        mk_timer_set(&r->timer, r->worker, RUN_MS);
    } else {
        mk_worker_log(r->worker, MK_LOG_ERROR, "acme: cannot start %s", r->job->program);
        schedule_retry(r);
    }
}

struct acme_helper_process *acme_helper_process_start(struct mk_worker *worker,
                                                      const struct acme_helper_job *job,
                                                      void (*on_due)(void *ctx, mk_str name), void *ctx)
{
    struct acme_helper_process *r = mk_mem_zalloc(1, sizeof *r);
    if (!r)
        return NULL;
    *r = (struct acme_helper_process){
        .worker = worker, .job = job, .on_due = on_due, .ctx = ctx, .again_ms = AGAIN_MS};
    mk_timer_init(&r->timer, on_start_timer);
    set_timer(r, FIRST_MS);
    return r;
}

void acme_helper_process_run_within(struct acme_helper_process *r, uint64_t seconds)
{
    uint64_t now = mk_worker_now_ms(r->worker), at = now + (seconds ? seconds : 1) * 1000;
    if (!r->run && at < r->next_ms)
        set_timer(r, at - now);
}

void acme_helper_process_stop(struct acme_helper_process *r)
{
    if (!r)
        return;
    mk_timer_stop(&r->timer);
    acme_helper_run_free(r->run);
    mk_mem_free(r);
}
