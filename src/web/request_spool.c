/* SPDX-License-Identifier: Apache-2.0 */
#include "web/spool_quota.h"

#include "base/mem.h"
#include "os/spool.h"
#include "web/request_type.h"
#include "web/web.h"

enum {
    KEPT_MAX = 64 * 1024, /* maximum bytes of one body in memory */
    KEPT_MIN = 4096,      /* the same after the client has used up its share of memory */
};

struct request_spool {
    struct mk_spool spool;
    struct mk_offload_job job;
    struct mk_spool_quota *all;
    struct mk_spool_client *client; /* NULL: the quota was released */
    struct mk_request *request;     /* NULL: the request ended while a thread was writing */
    size_t kept;                    /* buffer bytes charged to the client */
    uint64_t stored;
    bool writing; /* the spool is owned by the writing thread */
    bool ended;   /* the client has sent the whole body */
    bool empty;   /* the request has no body */
    mk_err error;
};

/* ---- Resources of one body ---- */

static void release_spool(struct request_spool *s)
{
    if (!s->client)
        return;
    s->client->kept -= s->kept;
    mk_spool_quota_release_request(s->all, s->client, s->stored);
    mk_spool_client_release(s->all, s->client);
    s->client = NULL;
    mk_spool_fini(&s->spool);
}

static void fail_spool(struct request_spool *s, mk_err e)
{
    s->error = e;
    release_spool(s);
}

static void log_and_fail_spool(struct request_spool *s, mk_err e)
{
    if (e == -EDQUOT)
        mk_request_log(
            s->request, MK_LOG_WARN,
            "the body is rejected: SpoolMax, or the half of it that one client may use, is exhausted");
    else if (e == -EMSGSIZE)
        mk_request_log(
            s->request, MK_LOG_WARN,
            "the body is rejected: it is larger than half of SpoolMax, the maximum for one client");
    else
        mk_request_log(s->request, MK_LOG_ERROR, "cannot write the body to the SpoolFolder %s: %s",
                       s->all->folder ? s->all->folder : "(no call of mk_server_enable_body_spool())",
                       mk_err_text(e));
    fail_spool(s, e);
}

static void on_request_end(void *data)
{
    struct request_spool *s = data;
    s->request = NULL;
    if (s->writing)
        return; /* freed in on_file_written() */
    release_spool(s);
    mk_mem_free(s);
}

/* ---- Writing to a file ---- */

static void write_file_job(struct mk_offload_job *job)
{
    struct request_spool *s = MK_CONTAINER(job, struct request_spool, job);
    s->error = mk_spool_write_to_file(&s->spool, s->all->folder);
}

static void on_file_written(struct mk_offload_job *job)
{
    struct request_spool *s = MK_CONTAINER(job, struct request_spool, job);
    s->writing = false;
    if (!s->request) {
        on_request_end(s);
        return;
    }
    if (s->error)
        log_and_fail_spool(s, s->error);
    mk_request_resume(s->request);
}

static void start_file_write(struct request_spool *s)
{
    size_t n = s->spool.kept.len;
    mk_err e = mk_spool_quota_charge_request(s->all, s->client, s->stored, n);
    if (e) {
        log_and_fail_spool(s, e);
        return;
    }
    s->stored += n;
    s->job = (struct mk_offload_job){.run = write_file_job, .done = on_file_written};
    s->writing = s->all->helper && mk_offload_submit(s->all->helper, &s->job);
    if (s->writing)
        return;
    write_file_job(&s->job);
    if (s->error)
        log_and_fail_spool(s, s->error);
}

/* ---- Buffering in memory ---- */

/* Returns the number of bytes by which the buffer may grow; 0: it may not grow. */
static size_t buffer_growth(const struct request_spool *s)
{
    size_t cap = s->spool.kept.cap;
    int64_t length = mk_request_length(s->request);
    if (cap)
        return cap < KEPT_MAX && mk_spool_client_may_buffer(s->client, cap) ? cap : 0;
    size_t expected = length < 0 ? KEPT_MIN : length < KEPT_MAX ? (size_t)length : KEPT_MAX;
    return mk_spool_client_may_buffer(s->client, expected) ? expected : mk_min(expected, KEPT_MIN);
}

static void reserve_buffer(struct request_spool *s)
{
    struct mk_buf *kept = &s->spool.kept;
    size_t more = buffer_growth(s);
    if (!more) {
        start_file_write(s);
        return;
    }
    if (!mk_buf_reserve(kept, more)) {
        fail_spool(s, -ENOMEM);
        return;
    }
    s->client->kept += kept->cap - s->kept;
    s->kept = kept->cap;
}

/* ---- Receiving ---- */

/* Processes the result of a read. False: no more data is available now. */
static bool append_received(struct request_spool *s, ssize_t n, uint64_t max)
{
    if (n == -EAGAIN)
        return false;
    s->ended = n == 0;
    if (n < 0)
        fail_spool(s, (mk_err)n);
    else
        s->spool.kept.len += (size_t)n;
    if (max && !s->error && mk_spool_length(&s->spool) > max)
        fail_spool(s, -EMSGSIZE);
    return true;
}

/* Called when the known length has been received: only EOF may follow. */
static bool expect_end_of_body(struct request_spool *s)
{
    char none;
    ssize_t n = mk_request_read(s->request, &none, sizeof none);
    return append_received(s, n > 0 ? -EBADMSG : n, 0);
}

static bool read_more_body(struct request_spool *s, uint64_t max)
{
    struct mk_buf *kept = &s->spool.kept;
    if ((int64_t)mk_spool_length(&s->spool) == mk_request_length(s->request))
        return expect_end_of_body(s);
    if (kept->len < kept->cap)
        return append_received(s, mk_request_read(s->request, kept->p + kept->len, kept->cap - kept->len),
                               max);
    reserve_buffer(s);
    return true;
}

static bool is_spool_complete(const struct request_spool *s)
{
    return s->ended && (s->spool.fd < 0 || !s->spool.kept.len);
}

static void advance_spool(struct request_spool *s, uint64_t max)
{
    bool goes_on = true;
    /* While the thread is writing, it owns the spool; only `writing` may be read here. */
    while (goes_on && !s->writing && !s->error && !is_spool_complete(s)) {
        if (s->ended)
            start_file_write(s);
        else
            goes_on = read_more_body(s, max);
    }
}

/* ---- Handler API ---- */

static const char key;

/* Checked before receiving, so that the client need not send a body that would be rejected. */
static bool exceeds_spool_quota(const struct request_spool *s)
{
    int64_t length = mk_request_length(s->request);
    return s->all->folder && length > KEPT_MAX && (uint64_t)length > mk_spool_quota_request_max(s->all);
}

static struct request_spool *new_request_spool(struct mk_request *r)
{
    struct request_spool *s = mk_mem_zalloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->all = &r->web->spools;
    s->request = r;
    s->empty = mk_request_length(r) == 0;
    s->client = mk_spool_client_acquire(s->all, r->peer);
    mk_spool_init(&s->spool, KEPT_MAX);
    if (!s->client) {
        mk_mem_free(s);
        return NULL;
    }
    if (mk_request_attach(r, &key, s, on_request_end))
        return NULL;
    if (exceeds_spool_quota(s))
        log_and_fail_spool(s, -EMSGSIZE);
    return s;
}

int mk_spool_request(struct mk_request *r, uint64_t max, struct mk_spool **out)
{
    struct request_spool *s = mk_request_attached(r, &key);
    if (s && mk_request_length(r) == 0 && !s->empty)
        s = NULL; /* mk_request_rewrite() dropped the body */
    if (!s)
        s = new_request_spool(r);
    if (!s)
        return -ENOMEM;
    *out = &s->spool;
    if (!s->writing && !s->error && !s->client)
        return -EINVAL; /* mk_spool_free() was called before */
    advance_spool(s, max);
    return s->writing ? -EAGAIN : s->error ? s->error : is_spool_complete(s) ? 0 : -EAGAIN;
}

void mk_spool_free(struct mk_spool *spool)
{
    release_spool(MK_CONTAINER(spool, struct request_spool, spool));
}

unsigned mk_spool_status(int error)
{
    switch (error) {
    case -EMSGSIZE:
        return 413;
    case -EBADMSG:
    case -ECONNRESET:
        return 400;
    case -ENOSPC:
        return 507;
    case -EDQUOT:
    case -ENOMEM:
    case -EMFILE:
    case -ENFILE:
    case -EAGAIN:
        return 503;
    default:
        return 500;
    }
}
