/* SPDX-License-Identifier: Apache-2.0 */
/* What services ask: to push jobs, and to look at them. */
#include <duda/asked.h>
#include <duda/errand.h>
#include <duda/memory.h>
#include <errno.h>
#include <monkey/mem.h>
#include <monkey/text.h>

#include "work.h"

enum { ID_RANDOM = 6, DELAY_MAX_DAYS = 3650 };

static bool is_name(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < n; i++)
        if (!mk_char_is_alpha(name[i]) && !mk_char_is_digit(name[i]) && !strchr("-_", name[i]))
            return false;
    return n > 0 && n <= DUDA_JOBS_NAME;
}

int duda_jobs_do(struct mk_worker *w, const struct duda_job_kind *kind)
{
    struct jobs_work *work = jobs_work_of(w);
    struct jobs_runner *r = work ? mk_mem_zalloc(1, sizeof *r) : NULL;
    char room[JOBS_QUEUE_MAX];
    const struct duda_owner *owner = duda_errand_owner(w);
    mk_str queue = jobs_work_queue(duda_scope_of(owner), kind->name, room);
    const char *wrong = is_name(kind->name) ? NULL : "expected letters, digits, `-` and `_` as its name";
    if (!r)
        return -ENOMEM;
    if (!wrong && kind->stack > DUDA_STACK_MAX)
        wrong = "a `.stack` is at most 8 MB: what needs more belongs on the heap";
    if (!wrong && kind->schedule)
        wrong = job_schedule_read(&r->schedule, mk_str_from_c(kind->schedule));
    for (const struct jobs_runner *other = work->runners; other && !wrong; other = other->next)
        if (mk_str_eq(mk_str_of(other->queue, other->queue_len), queue))
            wrong = "its service, or one that has a Share with it, has one of this name already";
    if (wrong) {
        mk_worker_log(w, MK_LOG_ERROR, "jobs `%s`: %s", kind->name, wrong);
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
    char room[JOBS_QUEUE_MAX];
};

/* That of the service whose handler this is. */
static mk_str queue_of(const struct duda *d, const char *kind, struct queue_name *name)
{
    return jobs_work_queue(duda_scope(d), kind, name->room);
}

/* In the order of time. */
static mk_str make_id(struct duda *d)
{
    char bits[ID_RANDOM], room[2 * ID_RANDOM];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    mk_random(bits, sizeof bits);
    mk_hex_encode(&text, mk_str_of(bits, sizeof bits));
    return duda_print(d, "%012llx%.*s", (unsigned long long)jobs_work_now_ms(),
                      MK_STR_ARG(mk_buf_str(&text)));
}

static int check(const char *kind, mk_str text, const struct duda_job_how *how)
{
    if (!is_name(kind) || how->unique.len > DUDA_JOBS_UNIQUE ||
        how->delay_ms > (uint64_t)DELAY_MAX_DAYS * 86400000)
        return -EINVAL;
    return text.len > DUDA_JOBS_TEXT_MAX ? -EMSGSIZE : 0;
}

/* A job that is on its way to the store. */
struct pushing {
    struct duda_wait wait; /* the first */
    struct mk_buf record;
};

static void free_record(struct duda_wait *w)
{
    mk_buf_free(&((struct pushing *)w)->record);
}

static int push(struct pushing *p, const char *kind, mk_str text, const struct duda_job_how *how,
                mk_str number)
{
    struct duda *d = p->wait.d;
    struct duda_store *s = jobs_work_store(d);
    struct queue_name name;
    mk_str unique = how->unique.len ? how->unique : MK_ABSENT, queue = queue_of(d, kind, &name);
    job_record_write(
        &p->record,
        &(struct job_record){.pushed_ms = (int64_t)jobs_work_now_ms(), .unique = unique, .text = text});
    if (p->record.failed || !number.p)
        return -ENOMEM;
    int e = s->jobs->push(d, s, queue, number, mk_buf_str(&p->record), unique,
                          (struct duda_jobs_due){.delay_ms = how->delay_ms});
    if (!e)
        jobs_work_announce(duda_worker(d), queue);
    return e;
}

int duda_jobs_push(struct duda *d, const char *kind, mk_str text, const struct duda_job_how *how, mk_str *id)
{
    static const struct duda_job_how plain;
    struct pushing p = {.record = mk_buf_growing(DUDA_JOBS_TEXT_MAX + DUDA_JOBS_UNIQUE + JOB_RECORD_HEAD)};
    int e = check(kind, text, how = how ? how : &plain);
    if (e || !jobs_work_store(d))
        return e ? e : -ENOTSUP;
    e = duda_wait_begin(d, &p.wait, free_record);
    if (e)
        return e;
    mk_str number = make_id(d);
    e = push(&p, kind, text, how, number);
    duda_wait_end(&p.wait);
    if (id)
        *id = e ? MK_ABSENT : number;
    return e;
}

/* ---- Looking at them ---- */

int duda_jobs_count(struct duda *d, const char *kind, struct duda_job_counts *out)
{
    struct duda_store *s = jobs_work_store(d);
    struct queue_name name;
    *out = (struct duda_job_counts){0};
    if (!s || !is_name(kind))
        return s ? -EINVAL : -ENOTSUP;
    return s->jobs->count(d, s, queue_of(d, kind, &name), out);
}

struct list {
    bool (*each)(void *ctx, const struct duda_job *job);
    void *ctx;
    unsigned n;
};

static bool list_one(void *ctx, mk_str id, mk_str text)
{
    struct list *l = ctx;
    struct job_record r;
    if (!job_record_read(text, &r))
        r = (struct job_record){.text = text};
    const struct duda_job job = {.id = id, .text = r.text, .pushed_ms = r.pushed_ms, .problem = r.problem};
    return l->each(l->ctx, &job) && ++l->n < DUDA_JOBS_LISTED;
}

int duda_jobs_dead(struct duda *d, const char *kind, bool (*each)(void *ctx, const struct duda_job *job),
                   void *ctx)
{
    struct duda_store *s = jobs_work_store(d);
    struct list l = {each, ctx, 0};
    struct queue_name name;
    if (!s || !is_name(kind))
        return s ? -EINVAL : -ENOTSUP;
    return s->jobs->list(d, s, queue_of(d, kind, &name), list_one, &l);
}

static bool is_id(mk_str id)
{
    for (size_t i = 0; i < id.len; i++)
        if (mk_char_hex(id.p[i]) < 0)
            return false;
    return id.len == 2 * (6 + ID_RANDOM);
}

static int revive(struct duda *d, const char *kind, mk_str id, bool drops)
{
    struct duda_store *s = jobs_work_store(d);
    struct queue_name name;
    if (!s)
        return -ENOTSUP;
    int e =
        !is_name(kind) || !is_id(id) ? -ENOENT : s->jobs->revive(d, s, queue_of(d, kind, &name), id, drops);
    if (!e && !drops)
        jobs_work_announce(duda_worker(d), queue_of(d, kind, &name));
    return e;
}

int duda_jobs_revive(struct duda *d, const char *kind, mk_str id)
{
    return revive(d, kind, id, false);
}

int duda_jobs_drop(struct duda *d, const char *kind, mk_str id)
{
    return revive(d, kind, id, true);
}
