/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that services call to enqueue and inspect jobs. */
#include <duda/memory.h>
#include <duda/request.h>
#include <duda/task.h>
#include <errno.h>
#include <monkey/mem.h>
#include <monkey/sized.h>
#include <monkey/text.h>

#include "jobs_worker.h"

enum { ID_RANDOM = 6, DELAY_MAX_DAYS = 3650 };

static bool is_valid_type_name(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < n; i++)
        if (!mk_char_is_alpha(name[i]) && !mk_char_is_digit(name[i]) && !strchr("-_", name[i]))
            return false;
    return n > 0 && n <= DUDA_JOBS_NAME_MAX;
}

int duda_jobs_register(struct mk_worker *w, const struct duda_job_type *kind)
{
    struct jobs_worker *work = jobs_worker_get(w);
    struct jobs_runner *r = work ? mk_mem_zalloc(1, sizeof *r) : NULL;
    char buf[JOBS_QUEUE_MAX];
    const struct duda_service_ref *owner = duda_task_owner(w);
    mk_str queue = jobs_queue_name(duda_scope_of(owner), kind->name, buf);
    const char *wrong =
        is_valid_type_name(kind->name) ? NULL : "its name must have 1 to 40 letters, digits, `-` and `_`";
    if (!r)
        return -ENOMEM;
    if (!wrong && kind->stack > DUDA_STACK_MAX)
        wrong = "a `.stack` is at most 8 MB: put large data on the heap";
    if (!wrong && kind->schedule)
        wrong = job_schedule_parse(&r->schedule, mk_str_from_c(kind->schedule));
    for (const struct jobs_runner *other = work->runners; other && !wrong; other = other->next)
        if (mk_str_eq(mk_str_of(other->queue, other->queue_len), queue))
            wrong = "its service, or a service in the same Share, already has a job type of this name";
    if (wrong) {
        mk_worker_log(w, MK_LOG_ERROR, "job type `%s`: %s", kind->name, wrong);
        mk_mem_free(r);
        return -EINVAL;
    }
    r->work = work;
    r->kind = kind;
    r->owner = owner;
    memcpy(r->queue, queue.p, queue.len);
    r->queue_len = queue.len;
    r->next = work->runners;
    work->runners = r;
    return 0;
}

struct queue_name {
    char buf[JOBS_QUEUE_MAX];
};

/* Returns the name of the queue that belongs to the handler's service. */
static mk_str job_queue_name(struct duda_ctx *d, const char *kind, struct queue_name *name)
{
    return jobs_queue_name(duda_scope(d), kind, name->buf);
}

/* IDs sort by creation time. */
static mk_str make_job_id(struct duda_ctx *d)
{
    char bits[ID_RANDOM], buf[2 * ID_RANDOM];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_random(bits, sizeof bits);
    mk_hex_encode(&text, mk_str_of(bits, sizeof bits));
    return duda_sprintf(d, "%012llx%.*s", (unsigned long long)jobs_now_ms(), MK_STR_ARG(mk_buf_str(&text)));
}

static int check_enqueued_job(const char *kind, mk_str text, const struct duda_job_options *options)
{
    if (!is_valid_type_name(kind) || options->unique_key.len > DUDA_JOBS_UNIQUE_KEY_MAX ||
        options->delay_ms > (uint64_t)DELAY_MAX_DAYS * 86400000)
        return -EINVAL;
    return text.len > DUDA_JOBS_PAYLOAD_MAX ? -EMSGSIZE : 0;
}

/* A call that writes a job to the store. */
struct enqueue_call {
    struct duda_wait wait; /* must be first */
    struct mk_buf record;
};

static void free_job_record(struct duda_wait *w)
{
    mk_buf_free(&((struct enqueue_call *)w)->record);
}

static int enqueue_job(struct enqueue_call *p, const char *kind, mk_str text,
                       const struct duda_job_options *options, mk_str id)
{
    struct duda_ctx *d = p->wait.d;
    struct duda_store *s = jobs_store_find(d);
    struct queue_name name;
    mk_str unique = options->unique_key.len ? options->unique_key : MK_STR_NULL,
           queue = job_queue_name(d, kind, &name);
    job_record_format(&p->record, &(struct job_record){
                                      .enqueued_ms = (int64_t)jobs_now_ms(), .unique = unique, .text = text});
    if (p->record.failed || !id.p)
        return -ENOMEM;
    int e = s->jobs->enqueue(d, s, queue, id, mk_buf_str(&p->record), unique,
                             (struct duda_jobs_due){.delay_ms = options->delay_ms});
    if (!e)
        jobs_worker_notify(duda_worker(d), queue);
    return e;
}

int duda_jobs_enqueue_sized(struct duda_ctx *d, const char *kind, mk_str text,
                            const struct duda_job_options *options, size_t options_size, mk_str *id)
{
    struct duda_job_options full;
    options = mk_sized_in(&full, sizeof full, options, options_size);
    static const struct duda_job_options plain;
    struct enqueue_call p = {
        .record = mk_buf_growing(DUDA_JOBS_PAYLOAD_MAX + DUDA_JOBS_UNIQUE_KEY_MAX + JOB_RECORD_HEAD)};
    int e = check_enqueued_job(kind, text, options = options ? options : &plain);
    if (e || !jobs_store_find(d))
        return e ? e : jobs_store_missing(d);
    e = duda_wait_begin(d, &p.wait, free_job_record);
    if (e)
        return e;
    mk_str job_id = make_job_id(d);
    e = enqueue_job(&p, kind, text, options, job_id);
    duda_wait_end(&p.wait);
    if (id)
        *id = e ? MK_STR_NULL : job_id;
    return e;
}

/* ---- Inspection ---- */

static int count_jobs(struct duda_ctx *d, const char *kind, struct duda_job_counts *out)
{
    struct duda_store *s = jobs_store_find(d);
    struct queue_name name;
    *out = (struct duda_job_counts){0};
    if (!s || !is_valid_type_name(kind))
        return s ? -EINVAL : jobs_store_missing(d);
    return s->jobs->count(d, s, job_queue_name(d, kind, &name), out);
}

int duda_jobs_count_sized(struct duda_ctx *d, const char *kind, struct duda_job_counts *out, size_t out_size)
{
    struct duda_job_counts full = {0};
    int result = count_jobs(d, kind, &full);
    mk_sized_out(out, out_size, &full, sizeof full);
    return result;
}

bool jobs_copy_job(struct duda_ctx *d, mk_str id, const struct job_record *r, struct duda_job *out)
{
    bool has_error = r->error_text.p;
    *out = (struct duda_job){.id = duda_strdup(d, id),
                             .payload = duda_strdup(d, r->text),
                             .enqueued_ms = r->enqueued_ms,
                             .last_error = has_error ? duda_strdup(d, r->error_text) : MK_STR_NULL};
    return out->id.p && out->payload.p && (out->last_error.p || !has_error);
}

struct list {
    struct duda_ctx *d;
    bool (*each)(void *ctx, const struct duda_job *job);
    void *ctx;
    unsigned n;
    int error;
};

static bool pass_failed_job(void *ctx, mk_str id, mk_str text)
{
    struct list *l = ctx;
    struct job_record r;
    struct duda_job job;
    if (!job_record_parse(text, &r))
        r = (struct job_record){.text = text};
    if (!jobs_copy_job(l->d, id, &r, &job))
        l->error = -ENOMEM;
    return !l->error && l->each(l->ctx, &job) && ++l->n < DUDA_JOBS_LIST_MAX;
}

int duda_jobs_list_failed(struct duda_ctx *d, const char *kind,
                          bool (*each)(void *ctx, const struct duda_job *job), void *ctx)
{
    struct duda_store *s = jobs_store_find(d);
    struct list l = {.d = d, .each = each, .ctx = ctx};
    struct queue_name name;
    if (!s || !is_valid_type_name(kind))
        return s ? -EINVAL : jobs_store_missing(d);
    int e = s->jobs->list(d, s, job_queue_name(d, kind, &name), pass_failed_job, &l);
    return e ? e : l.error;
}

static bool is_job_id(mk_str id)
{
    for (size_t i = 0; i < id.len; i++)
        if (mk_char_hex(id.p[i]) < 0)
            return false;
    return id.len == 2 * (6 + ID_RANDOM);
}

static int check_failed_job(struct duda_ctx *d, const char *kind, mk_str id)
{
    if (!jobs_store_find(d))
        return jobs_store_missing(d);
    return is_valid_type_name(kind) && is_job_id(id) ? 0 : -ENOENT;
}

int duda_jobs_retry(struct duda_ctx *d, const char *kind, mk_str id)
{
    struct duda_store *s = jobs_store_find(d);
    struct queue_name name;
    struct job_record r = {0};
    mk_str record;
    int e = check_failed_job(d, kind, id);
    if (e)
        return e;
    mk_str queue = job_queue_name(d, kind, &name);
    e = s->jobs->get_failed(d, s, queue, id, &record);
    if (!e && !job_record_parse(record, &r))
        r.unique = MK_STR_NULL;
    e = e ? e : s->jobs->retry(d, s, queue, id, r.unique);
    if (!e)
        jobs_worker_notify(duda_worker(d), queue);
    return e;
}

int duda_jobs_delete(struct duda_ctx *d, const char *kind, mk_str id)
{
    struct duda_store *s = jobs_store_find(d);
    struct queue_name name;
    int e = check_failed_job(d, kind, id);
    return e ? e : s->jobs->remove(d, s, job_queue_name(d, kind, &name), id);
}
