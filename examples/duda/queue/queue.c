/* SPDX-License-Identifier: Apache-2.0 */
/* Background jobs with a dashboard: jobs handle the orders and retry failed ones; the dashboard lists dead
 * jobs. */
#define DUDA_USE "duda-jobs", "duda-kv"
#include <duda.h>
#include <duda/jobs.h>
#include <duda/kv.h>
#include <errno.h>

enum { SHOWN_MAX = 50, TEXT_MAX_LEN = 200 };

/* ---- Jobs ---- */

/* Simulates the handling of an order. Delivery is at least once, so each finished job is recorded under its
 * ID: a counter would count a repeated run twice. */
static int handle_order(struct duda_ctx *d, const struct duda_job *job)
{
    int e = duda_sleep(d, 50);
    if (e)
        return e;
    if (mk_str_eq(job->payload, MK_STR("nonsense")))
        return duda_job_fail(d, -EBADMSG, "nobody sells nonsense");
    if (mk_str_eq(job->payload, MK_STR("glass")) && job->attempt < 3)
        return duda_job_fail(d, -EAGAIN, "it broke");
    return duda_kv_set(d, duda_kv_find(d, NULL), duda_sprintf(d, "done/%.*s", MK_STR_ARG(job->id)),
                       job->payload, 0);
}

/* Runs once a minute, in one of the workers. */
static int report(struct duda_ctx *d, const struct duda_job *job)
{
    struct duda_job_counts n;
    (void)job;
    int e = duda_jobs_count(d, "order", &n);
    if (!e)
        duda_log(d, MK_LOG_INFO, "%llu orders wait, %llu are dead", (unsigned long long)n.waiting,
                 (unsigned long long)n.failed);
    return e;
}

static const struct duda_job_type order = {
    .name = "order", .fn = handle_order, .concurrency = 4, .max_attempts = 5, .backoff_ms = 100};
static const struct duda_job_type minute = {.name = "report", .fn = report, .schedule = "every 1m"};

static int start(struct mk_worker *worker)
{
    int e = duda_jobs_register(worker, &order);
    return e ? e : duda_jobs_register(worker, &minute);
}

/* ---- The dashboard ---- */

struct dead {
    mk_str id, text, error;
};

static const struct duda_schema_field members[] = {
    DUDA_STRING(struct dead, id),
    DUDA_STRING(struct dead, text),
    DUDA_STRING(struct dead, error),
};
static const struct duda_schema schema = DUDA_SCHEMA(struct dead, members);

struct listing {
    struct duda_ctx *d;
    struct dead dead[SHOWN_MAX];
    size_t n;
};

static bool add(void *ctx, const struct duda_job *job)
{
    struct listing *l = ctx;
    l->dead[l->n++] = (struct dead){duda_strdup(l->d, job->id), duda_strdup(l->d, job->payload),
                                    duda_strdup(l->d, job->last_error)};
    return l->n < SHOWN_MAX;
}

static bool count(void *ctx, mk_str key, mk_str value)
{
    (void)key, (void)value;
    ++*(int64_t *)ctx;
    return true;
}

static int show(struct duda_ctx *d)
{
    struct duda_job_counts n;
    int64_t done = 0;
    struct listing *l = duda_alloc(d, sizeof *l);
    if (!l)
        return -ENOMEM;
    l->d = d;
    l->n = 0;
    int e = duda_jobs_count(d, "order", &n);
    e = e ? e : duda_kv_scan(d, duda_kv_find(d, NULL), MK_STR("done/"), MK_STR_NULL, count, &done);
    e = e ? e : duda_jobs_list_failed(d, "order", add, l);
    const struct duda_entry page[] = {
        {"waiting", duda_value_integer((int64_t)n.waiting)},
        {"running", duda_value_integer((int64_t)n.running)},
        {"done", duda_value_integer(done)},
        {"dead", duda_value_structs(&schema, l->dead, l->n)},
    };
    return e ? e : duda_render(d, "board.html", duda_value_map(page, MK_LEN(page)));
}

static int push(struct duda_ctx *d)
{
    mk_str text = duda_form(d, "text");
    if (!text.len || text.len > TEXT_MAX_LEN)
        return 422;
    int e = duda_jobs_enqueue(d, "order", text, NULL, NULL);
    return e ? e : duda_redirect(d, 303, MK_STR("/"));
}

static int decide(struct duda_ctx *d)
{
    mk_str id = duda_form(d, "id");
    int e = mk_str_eq(duda_form(d, "what"), MK_STR("drop")) ? duda_jobs_delete(d, "order", id)
                                                            : duda_jobs_retry(d, "order", id);
    return e == -ENOENT ? 404 : e ? e : duda_redirect(d, 303, MK_STR("/"));
}

DUDA_SERVICE(queue, DUDA_START(start), DUDA_BEFORE(duda_csrf_check), DUDA_GET("/", show, "The dashboard."),
             DUDA_POST("/", push, "Takes an order."),
             DUDA_POST("/dead", decide, "Lets a dead order wait again, or drops it."));
