/* SPDX-License-Identifier: Apache-2.0 */
#include "issuer.h"

#include <errno.h>

#include "allow_endpoint.h"
#include "helper_process.h"
#include "hostname.h"
#include "rate.h"
#include "refusals.h"

enum {
    TASKS_MAX = 256,
    UNLISTED_MAX = 192,         /* tasks; only listed names get a task beyond */
    CLIENT_MAX = 16,            /* tasks of a client network */
    ASKS_MAX = 64,              /* questions at the same time */
    RUNS_MAX = 4,               /* programs at the same time */
    CLIENT_RUNS_MAX = 2,        /* of these, for a client network */
    RENEWALS_MAX = 2,           /* of these tasks, for renewals */
    RUN_MS = 360 * 1000,        /* an authority may validate a name for minutes */
    REFUSED_MS = 300 * 1000,    /* the endpoint refuses the name */
    NO_ANSWER_MS = 30 * 1000,   /* the endpoint fails */
    LIMITED_MS = 2000,          /* a limit is reached */
    FAILED_MIN_MS = 10 * 1000,  /* the authority issues no certificate */
    FAILED_MAX_MS = 300 * 1000, /* the program knows the exact time */
    COMPLAIN_MS = 10 * 1000,
    NAME_SIZE = 256,
    LIST_MAX = 64 * 1024 * 1024,
    WORKERS_MAX = 64,
};

enum task_state { TASK_WAITS_TO_ASK, TASK_ASKS, TASK_WAITS_TO_RUN, TASK_RUNS };

struct task {
    struct task *next;
    struct acme_issuer *issuer;
    enum task_state state;
    bool is_renewal;
    bool is_answered; /* the workers know the result */
    enum acme_result failure;
    uint64_t workers; /* that wait, by index; for an index of WORKERS_MAX or more, all bits are set */
    uint64_t next_s;  /* until the next attempt or the renewal, according to the program */
    struct mk_addr network;
    struct acme_question *question;
    struct acme_helper_run *run;
    struct mk_timer timer; /* the time limit of the program */
    size_t len;
    char name[NAME_SIZE];
};

/* An event that strangers can cause often, and that is therefore logged seldom. */
struct complaint {
    uint64_t logged_ms; /* 0: never */
    unsigned n;         /* since then */
};

struct acme_issuer {
    struct mk_worker *worker;
    const struct mk_plugin *plugin;
    const struct acme_demand_stats *stats;
    const struct acme_helper_job *job;
    struct task *tasks; /* in the order of their arrival */
    size_t n_tasks;
    struct acme_helper_process *renewals; /* looks for certificates to renew */
    struct mk_buf due;                    /* their names, one to a line */
    struct acme_refusals refusals;
    struct acme_rates rates;
    struct complaint silence, limit; /* failures of the endpoint; OnDemandRate */
};

/* ---- Messages ---- */

bool acme_message_parse(mk_str text, struct acme_message *m, mk_str *name)
{
    if (text.len <= sizeof *m)
        return false;
    memcpy(m, text.p, sizeof *m);
    *name = mk_str_skip(text, sizeof *m);
    return name->len < NAME_SIZE;
}

int acme_message_send(struct mk_worker *worker, const struct mk_plugin *plugin, unsigned to,
                      const struct acme_message *m, mk_str name)
{
    char bytes[sizeof *m + NAME_SIZE];
    struct mk_buf text = mk_buf_fixed(bytes, sizeof bytes);
    mk_buf_add(&text, mk_str_of((const char *)m, sizeof *m));
    mk_buf_add(&text, name);
    return text.failed ? -EMSGSIZE : mk_worker_send(worker, plugin, to, mk_buf_str(&text));
}

static mk_str task_name(const struct task *t)
{
    return mk_str_of(t->name, t->len);
}

/* Tells the result to the workers that wait for it; that a certificate was issued, to all, because another worker may
 * have been told the opposite before. */
static void answer_workers(struct acme_issuer *s, uint64_t workers, mk_str name, bool is_issued,
                           uint32_t refused_ms)
{
    const struct acme_message m = {.kind = is_issued ? ACME_MESSAGE_ISSUED : ACME_MESSAGE_REFUSED,
                                   .refused_ms = refused_ms};
    if (is_issued || workers == UINT64_MAX) {
        (void)acme_message_send(s->worker, s->plugin, MK_TO_ALL, &m, name);
        return;
    }
    for (unsigned i = 0; i < WORKERS_MAX; i++)
        if (workers >> i & 1)
            (void)acme_message_send(s->worker, s->plugin, i, &m, name);
}

static uint64_t worker_bit(unsigned index)
{
    return index < WORKERS_MAX ? UINT64_C(1) << index : UINT64_MAX;
}

/* ---- Tasks ---- */

static void advance_tasks(struct acme_issuer *s);

static void free_task(struct task *t)
{
    struct task **at = &t->issuer->tasks;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    t->issuer->n_tasks--;
    acme_demand_stats_set_active(t->issuer->worker, t->issuer->stats, t->issuer->n_tasks);
    mk_timer_stop(&t->timer);
    acme_question_free(t->question);
    acme_helper_run_free(t->run);
    mk_worker_unref(t->issuer->worker);
    mk_mem_free(t);
}

static bool is_listed(const struct acme_issuer *s, mk_str name)
{
    return acme_allow_list_has(&s->job->settings->allow_list, name);
}

static struct task *add_task(struct acme_issuer *s, mk_str name)
{
    struct task *t = name.len < NAME_SIZE ? mk_mem_zalloc(1, sizeof *t) : NULL, **end = &s->tasks;
    if (!t)
        return NULL;
    t->issuer = s;
    t->state = is_listed(s, name) ? TASK_WAITS_TO_RUN : TASK_WAITS_TO_ASK;
    t->failure = ACME_RESULT_LIMITED;
    t->len = name.len;
    memcpy(t->name, name.p, name.len);
    while (*end)
        end = &(*end)->next;
    *end = t;
    s->n_tasks++;
    acme_demand_stats_set_active(s->worker, s->stats, s->n_tasks);
    mk_worker_ref(s->worker); /* other workers of this configuration may wait for the result */
    return t;
}

static size_t count_tasks(const struct acme_issuer *s, enum task_state state)
{
    size_t n = 0;
    for (const struct task *t = s->tasks; t; t = t->next)
        n += t->state == state;
    return n;
}

static bool is_of_client(const struct task *t, const struct mk_addr *network)
{
    return !t->is_renewal && t->network.is_unix == network->is_unix &&
           memcmp(t->network.ip, network->ip, sizeof network->ip) == 0;
}

static size_t count_client_tasks(const struct acme_issuer *s, const struct mk_addr *network)
{
    size_t n = 0;
    for (const struct task *t = s->tasks; t; t = t->next)
        n += is_of_client(t, network);
    return n;
}

static size_t count_client_runs(const struct acme_issuer *s, const struct mk_addr *network)
{
    size_t n = 0;
    for (const struct task *t = s->tasks; t; t = t->next)
        n += t->state == TASK_RUNS && is_of_client(t, network);
    return n;
}

static struct task *find_task(const struct acme_issuer *s, mk_str name)
{
    struct task *t = s->tasks;
    while (t && !mk_str_eq(task_name(t), name))
        t = t->next;
    return t;
}

/* Renewals are not counted: no client has requested them. */
static void answer_task(struct task *t, enum acme_result result, uint32_t refused_ms)
{
    struct acme_issuer *s = t->issuer;
    uint64_t now = mk_worker_now_ms(s->worker);
    bool is_issued = result == ACME_RESULT_ISSUED;
    if (t->is_answered)
        return;
    t->is_answered = true;
    if (!t->is_renewal)
        acme_demand_stats_count(s->worker, s->stats, result);
    if (!t->is_renewal || is_issued)
        acme_refusals_set(&s->refusals, task_name(t), is_issued ? 0 : now + refused_ms, now);
    answer_workers(s, t->workers, task_name(t), is_issued, refused_ms);
}

static void end_task(struct task *t, enum acme_result result, uint32_t refused_ms)
{
    struct acme_issuer *s = t->issuer;
    answer_task(t, result, refused_ms);
    free_task(t);
    advance_tasks(s);
}

/* ---- Complaints ---- */

/* Counts the event. Returns whether to log it. */
static bool may_complain(const struct acme_issuer *s, struct complaint *c)
{
    uint64_t now = mk_worker_now_ms(s->worker);
    c->n++;
    if (c->logged_ms && now - c->logged_ms < COMPLAIN_MS)
        return false;
    c->logged_ms = now;
    return true;
}

static unsigned complaint_count(struct complaint *c)
{
    unsigned n = c->n;
    c->n = 0;
    return n;
}

/* ---- The allow endpoint ---- */

static void log_no_answer(struct task *t, const char *text)
{
    struct acme_issuer *s = t->issuer;
    if (may_complain(s, &s->silence))
        mk_worker_log(s->worker, MK_LOG_ERROR,
                      "acme: AllowEndpoint %.*s did not say whether %.*s is allowed: %s (%u times since the "
                      "last message)",
                      MK_STR_ARG(s->job->settings->endpoint), MK_STR_ARG(task_name(t)), text,
                      complaint_count(&s->silence));
}

static void on_answer(void *ctx, enum acme_answer answer, const char *text)
{
    struct task *t = ctx;
    struct acme_issuer *s = t->issuer;
    if (answer == ACME_NO_ANSWER)
        log_no_answer(t, text);
    else if (answer == ACME_REFUSED)
        mk_worker_log(s->worker, t->is_renewal ? MK_LOG_INFO : MK_LOG_DEBUG, "acme: %.*s is not allowed: %s",
                      MK_STR_ARG(task_name(t)), text);
    if (answer != ACME_ALLOWED) {
        bool is_refused = answer == ACME_REFUSED;
        end_task(t, is_refused ? ACME_RESULT_NOT_ALLOWED : ACME_RESULT_NO_ANSWER,
                 is_refused ? REFUSED_MS : NO_ANSWER_MS);
        return;
    }
    acme_question_free(t->question);
    t->question = NULL;
    t->state = TASK_WAITS_TO_RUN;
    advance_tasks(s);
}

/* Returns false if the task has failed. */
static bool ask(struct task *t)
{
    t->state = TASK_ASKS;
    t->question = acme_question_ask(t->issuer->worker, t->issuer->job->settings, task_name(t), on_answer, t);
    if (t->question)
        return true;
    log_no_answer(t, "the request cannot be sent");
    t->failure = ACME_RESULT_NO_ANSWER;
    return false;
}

/* ---- The program ---- */

static void on_run_report(void *ctx, enum acme_helper_report report, mk_str text)
{
    struct task *t = ctx;
    uint64_t n;
    if (report == ACME_HELPER_ISSUED)
        answer_task(t, ACME_RESULT_ISSUED, 0);
    else if (report == ACME_HELPER_NEXT && mk_num_parse(text, &n))
        t->next_s = n;
}

static void on_run_end(void *ctx, int status)
{
    struct task *t = ctx;
    uint64_t ms = t->next_s < FAILED_MAX_MS / 1000 ? t->next_s * 1000 : FAILED_MAX_MS;
    bool is_issued = status == 0;
    t->run = NULL; /* freed by its caller */
    if (is_issued && t->next_s)
        acme_helper_process_run_within(t->issuer->renewals, t->next_s);
    if (status < 0)
        mk_worker_log(t->issuer->worker, MK_LOG_ERROR, "acme: cannot start %s: %s", t->issuer->job->program,
                      strerror(-status));
    end_task(t, is_issued ? ACME_RESULT_ISSUED : ACME_RESULT_FAILED,
             ms > FAILED_MIN_MS ? (uint32_t)ms : FAILED_MIN_MS);
}

static void on_run_timeout(struct mk_timer *timer)
{
    acme_helper_run_time_out(MK_CONTAINER(timer, struct task, timer)->run);
}

/* Returns false if the task has failed. */
static bool run(struct task *t)
{
    struct acme_issuer *s = t->issuer;
    t->state = TASK_RUNS;
    mk_timer_init(&t->timer, on_run_timeout);
    t->run = acme_helper_run_start(s->worker, s->job, task_name(t), on_run_report, on_run_end, t);
    if (t->run) {
        mk_timer_set(&t->timer, s->worker, RUN_MS);
        return true;
    }
    mk_worker_log(s->worker, MK_LOG_ERROR, "acme: cannot start %s", s->job->program);
    t->failure = ACME_RESULT_FAILED;
    return false;
}

/* ---- Progress ---- */

static bool has_space_to_run(const struct task *t)
{
    return count_tasks(t->issuer, TASK_RUNS) < RUNS_MAX &&
           (t->is_renewal || count_client_runs(t->issuer, &t->network) < CLIENT_RUNS_MAX);
}

static bool is_within_rate(struct task *t)
{
    struct acme_issuer *s = t->issuer;
    if (t->is_renewal ||
        acme_rates_take(&s->rates, ACME_RATE_ISSUES, &t->network, mk_worker_now_ms(s->worker)))
        return true;
    if (may_complain(s, &s->limit))
        mk_worker_log(
            s->worker, MK_LOG_WARN,
            "acme: %.*s gets no certificate now: OnDemandRate is reached (%u times since the last message)",
            MK_STR_ARG(task_name(t)), complaint_count(&s->limit));
    return false;
}

static void log_unlisted(const struct acme_issuer *s, enum mk_log_level level, mk_str name)
{
    mk_worker_log(s->worker, level, "acme: %.*s is not allowed: AllowFile does not list it",
                  MK_STR_ARG(name));
}

/* Asks the endpoint about a name that is not listed. Without an endpoint, the task is a renewal. Returns false if the
 * task has failed. */
static bool start_asking(struct task *t)
{
    if (t->issuer->job->settings->endpoint.len)
        return ask(t);
    log_unlisted(t->issuer, MK_LOG_INFO, task_name(t));
    t->failure = ACME_RESULT_NOT_ALLOWED;
    return false;
}

/* Starts the next step of the task, if there is space for it. Returns false if the task has failed. */
static bool start_step(struct task *t)
{
    struct acme_issuer *s = t->issuer;
    if (t->state == TASK_WAITS_TO_ASK && count_tasks(s, TASK_ASKS) < ASKS_MAX && !start_asking(t))
        return false;
    if (t->state == TASK_WAITS_TO_RUN && has_space_to_run(t))
        return is_within_rate(t) && run(t);
    return true;
}

static size_t count_renewals(const struct acme_issuer *s)
{
    size_t n = 0;
    for (const struct task *t = s->tasks; t; t = t->next)
        n += t->is_renewal;
    return n;
}

static void start_renewals(struct acme_issuer *s)
{
    mk_str rest = mk_buf_str(&s->due);
    while (rest.len && count_renewals(s) < RENEWALS_MAX) {
        mk_str name = mk_str_cut(&rest, '\n');
        struct task *t = find_task(s, name) ? NULL : add_task(s, name);
        if (t)
            t->is_renewal = true;
    }
    mk_buf_consume(&s->due, s->due.len - rest.len);
}

/* How long the name is refused if a step of its task cannot start. */
static uint32_t refused_ms(enum acme_result failure)
{
    return failure == ACME_RESULT_NOT_ALLOWED ? REFUSED_MS
           : failure == ACME_RESULT_NO_ANSWER ? NO_ANSWER_MS
           : failure == ACME_RESULT_FAILED    ? FAILED_MIN_MS
                                              : LIMITED_MS;
}

static void advance_tasks(struct acme_issuer *s)
{
    start_renewals(s);
    for (struct task *t = s->tasks, *next; t; t = next) {
        next = t->next;
        if (start_step(t))
            continue;
        answer_task(t, t->failure, refused_ms(t->failure));
        free_task(t);
    }
}

/* ---- Requests ---- */

/* Listed names need no question, so names that strangers make up do not use up their limits. */
static bool is_within_limits(struct acme_issuer *s, const struct mk_addr *network, mk_str name)
{
    bool needs_question = !is_listed(s, name);
    return s->n_tasks < (needs_question ? UNLISTED_MAX : TASKS_MAX) &&
           count_client_tasks(s, network) < CLIENT_MAX &&
           (!needs_question ||
            acme_rates_take(&s->rates, ACME_RATE_ASKS, network, mk_worker_now_ms(s->worker)));
}

static void refuse_request(struct acme_issuer *s, const struct acme_message *m, mk_str name,
                           enum acme_result result)
{
    acme_demand_stats_count(s->worker, s->stats, result);
    answer_workers(s, worker_bit(m->from), name, false, refused_ms(result));
}

void acme_issuer_on_request(struct acme_issuer *s, const struct acme_message *m, mk_str name)
{
    uint64_t now = mk_worker_now_ms(s->worker), until = acme_refusals_get(&s->refusals, name, now);
    struct task *t = find_task(s, name);
    if (t && !t->is_answered) {
        t->workers |= worker_bit(m->from);
        return;
    }
    if (t || until) {
        answer_workers(s, worker_bit(m->from), name, t, (uint32_t)(until > now ? until - now : 0));
        return;
    }
    /* The result is not remembered here, so that strangers' names do not replace failures of listed ones. */
    if (!s->job->settings->endpoint.len && !is_listed(s, name)) {
        log_unlisted(s, MK_LOG_DEBUG, name);
        refuse_request(s, m, name, ACME_RESULT_NOT_ALLOWED);
        return;
    }
    t = is_within_limits(s, &m->network, name) ? add_task(s, name) : NULL;
    if (!t) {
        refuse_request(s, m, name, ACME_RESULT_LIMITED);
        return;
    }
    t->workers = worker_bit(m->from);
    t->network = m->network;
    advance_tasks(s);
}

void acme_issuer_drain(struct acme_issuer *s)
{
    mk_buf_clear(&s->due);
}

static void on_due(void *ctx, mk_str name)
{
    struct acme_issuer *s = ctx;
    if (!acme_hostname_is_public(name))
        return;
    mk_buf_addf(&s->due, "%.*s\n", MK_STR_ARG(name));
    advance_tasks(s);
}

void acme_issuer_free(struct acme_issuer *s)
{
    if (!s)
        return;
    while (s->tasks)
        free_task(s->tasks);
    acme_helper_process_stop(s->renewals);
    mk_buf_free(&s->due);
    mk_mem_free(s);
}

struct acme_issuer *acme_issuer_new(struct mk_worker *worker, const struct mk_plugin *plugin,
                                    const struct acme_demand_stats *stats, const struct acme_helper_job *job)
{
    struct acme_issuer *s = mk_mem_zalloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->worker = worker;
    s->plugin = plugin;
    s->stats = stats;
    s->job = job;
    s->due = mk_buf_growing(LIST_MAX);
    acme_refusals_init(&s->refusals);
    acme_rates_init(&s->rates,
                    (struct acme_rate){job->settings->on_demand_interval_ms, job->settings->on_demand_burst});
    s->renewals = acme_helper_process_start(worker, job, on_due, s);
    if (s->renewals)
        return s;
    acme_issuer_free(s);
    return NULL;
}
