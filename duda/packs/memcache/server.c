/* SPDX-License-Identifier: Apache-2.0 */
/* Commands wait for the end of the turn, then for their replies. While the server is away they wait for it,
 * each for as long as Timeout; once it has been away for that long, new ones fail at once. It is there when
 * it has answered a sign of life, which a frozen one does not. */
#include "server.h"

#include <errno.h>

#include "sections.h"
#include <monkey/mem.h>

enum {
    TICK_MS = 50,
    READ_ROOM = 16 * 1024,
    LINES_ROOM = 4096,
    OUT_MAX = 256 << 20,
    BACKOFF_MIN_MS = 50,
    BACKOFF_MAX_MS = 1000
};

void memcache_job_free(struct memcache_job *job)
{
    if (job)
        mk_buf_free(&job->bytes);
    mk_mem_free(job);
}

static struct memcache_job *take(struct memcache_jobs *jobs)
{
    struct memcache_job *job = jobs->first;
    jobs->first = job->next;
    if (!jobs->first)
        jobs->end = &jobs->first;
    job->next = NULL;
    return job;
}

static void append(struct memcache_jobs *jobs, struct memcache_job *job)
{
    *jobs->end = job;
    jobs->end = &job->next;
}

static void finish(struct memcache_server *s, struct memcache_jobs *jobs, const struct memcache_reply *reply,
                   int error)
{
    struct memcache_job *job = take(jobs);
    s->n--;
    if (job->on_reply)
        job->on_reply(job->ctx, reply, error);
    memcache_job_free(job);
}

static void fail_all(struct memcache_server *s, struct memcache_jobs *jobs, int error)
{
    while (jobs->first)
        finish(s, jobs, NULL, error);
}

static bool has_been_away(const struct memcache_server *s)
{
    return s->down_ms && mk_worker_now_ms(s->worker) - s->down_ms >= s->settings->timeout_ms;
}

/* ---- Its end ---- */

void memcache_server_explain(struct memcache_server *s, mk_str why)
{
    struct mk_buf text = mk_buf_fixed(s->why, sizeof s->why - 1);
    mk_buf_addf(&text, "[MEMCACHE] %.*s, ", MK_STR_ARG(s->settings->name));
    mk_buf_add(&text, mk_str_first(mk_upstream_name(s->upstream), 80));
    mk_buf_add(&text, MK_STR(": "));
    mk_buf_add(&text, mk_str_first(why, sizeof s->why - 1 - text.len));
    s->why[text.len] = 0;
}

static void drop(struct memcache_server *s)
{
    mk_upstream_conn_release(s->link, MK_UPSTREAM_CONN_CLOSE);
    s->link = NULL;
    s->state = MEMCACHE_DOWN;
    mk_buf_free(&s->in);
    mk_buf_free(&s->out);
}

static void back_off(struct memcache_server *s, bool was_up)
{
    uint64_t now = mk_worker_now_ms(s->worker);
    s->backoff_ms = was_up ? 0 : s->backoff_ms ? s->backoff_ms * 2 : BACKOFF_MIN_MS;
    if (s->backoff_ms > BACKOFF_MAX_MS)
        s->backoff_ms = BACKOFF_MAX_MS;
    s->retry_ms = now + s->backoff_ms;
    if (!was_up && !s->down_ms)
        s->down_ms = now;
}

static void fail(struct memcache_server *s, int error, const char *why)
{
    bool was_up = s->state == MEMCACHE_UP;
    memcache_server_explain(s, mk_str_from_c(why));
    drop(s);
    back_off(s, was_up);
    if (!was_up && !s->is_reported) {
        mk_worker_log(s->worker, MK_LOG_ERROR, "%s", s->why);
        s->is_reported = true;
    }
    fail_all(s, &s->sent, error);
    if (has_been_away(s) || error == -ENOKEY) /* permissions do not change while commands wait */
        fail_all(s, &s->waiting, error);
    else if (s->waiting.first && was_up)
        mk_turn_end_set(s->turn);
}

static void fail_errno(struct memcache_server *s, int e)
{
    const char *why = e == -EHOSTUNREACH ? "its name does not resolve, or it is down" : strerror(-e);
    fail(s, pack_connect_error(e), why);
}

/* ---- Bytes out ---- */

static void flush(struct memcache_server *s)
{
    if (s->out.failed) {
        fail(s, -ENOMEM, "out of memory for commands");
        return;
    }
    while (s->link && s->out.len) {
        ssize_t n = mk_upstream_conn_write(s->link, mk_buf_str(&s->out), false);
        if (n == -EAGAIN)
            return;
        if (n < 0) {
            fail_errno(s, (int)n);
            return;
        }
        mk_buf_drop(&s->out, (size_t)n);
    }
}

static void greet(struct memcache_server *s)
{
    s->state = MEMCACHE_GREETING;
    mk_buf_add(&s->out, MK_STR("mn\r\n"));
    flush(s);
}

static void become_up(struct memcache_server *s)
{
    s->state = MEMCACHE_UP;
    s->backoff_ms = 0;
    s->down_ms = 0;
    if (s->is_reported)
        mk_worker_log(s->worker, MK_LOG_INFO, "[MEMCACHE] %.*s, %.*s is back", MK_STR_ARG(s->settings->name),
                      MK_STR_ARG(mk_upstream_name(s->upstream)));
    s->is_reported = false;
    mk_turn_end_set(s->turn);
}

/* ---- Bytes in ---- */

static void on_greeting(struct memcache_server *s, const struct memcache_reply *reply)
{
    if (reply->word == MEMCACHE_HERE)
        become_up(s);
    else
        fail(s, -EPROTO, "it does not speak the meta protocol (Memcached 1.6)");
}

static void on_reply(struct memcache_server *s, const struct memcache_reply *reply)
{
    if (reply->word >= MEMCACHE_CLIENT_ERROR)
        memcache_server_explain(s, reply->value);
    if (s->state == MEMCACHE_GREETING)
        on_greeting(s, reply);
    else if (s->sent.first)
        finish(s, &s->sent, reply, 0);
    else
        fail(s, -EPROTO, "a reply that no command asked for");
}

static void parse(struct memcache_server *s)
{
    struct memcache_reply reply;
    size_t done = 0;
    while (s->link) {
        ssize_t n = memcache_reply_read(mk_str_skip(mk_buf_str(&s->in), done), (size_t)s->settings->value_max,
                                        &reply);
        if (n == 0)
            break;
        if (n < 0) {
            fail(s, (int)n, n == -EMSGSIZE ? "a value is longer than MaxValue" : "it answers something odd");
            return;
        }
        on_reply(s, &reply);
        done += (size_t)n;
    }
    if (s->link)
        mk_buf_drop(&s->in, done);
}

/* Says whether to go on. */
static bool read_some(struct memcache_server *s)
{
    if (!mk_buf_reserve(&s->in, READ_ROOM)) {
        fail(s, -ENOMEM, "out of memory for a reply");
        return false;
    }
    ssize_t n = mk_upstream_conn_read(s->link, s->in.p + s->in.len, s->in.cap - s->in.len);
    if (n == -EAGAIN)
        return false;
    if (n <= 0) {
        fail(s, n < 0 ? (int)n : -ECONNRESET, "the server has closed the connection");
        return false;
    }
    s->in.len += (size_t)n;
    parse(s);
    return s->link != NULL;
}

static void advance(struct memcache_server *s)
{
    if (s->state == MEMCACHE_CONNECTING) {
        int e = mk_upstream_conn_state(s->link);
        if (e == -EAGAIN)
            return;
        if (e) {
            fail_errno(s, e);
            return;
        }
        greet(s);
    }
    flush(s);
    while (s->link && read_some(s))
        continue;
    if (s->link && !s->in.len)
        mk_buf_free(&s->in); /* an idle connection has no buffer */
}

static void on_ready(void *ctx, unsigned which)
{
    (void)which;
    advance(ctx);
}

static void connect_to(struct memcache_server *s)
{
    const struct mk_upstream_conn_options options = {.server = -1, .fresh = true};
    uint64_t now = mk_worker_now_ms(s->worker);
    if (s->state != MEMCACHE_DOWN || now < s->retry_ms)
        return;
    s->since_ms = now;
    s->state = MEMCACHE_CONNECTING;
    s->in = mk_buf_growing((size_t)s->settings->value_max + 2 * READ_ROOM + LINES_ROOM);
    s->out = mk_buf_growing(OUT_MAX);
    s->link = mk_upstream_conn_acquire(s->worker, s->upstream, &options, on_ready, s);
    if (s->link)
        advance(s);
    else
        fail_errno(s, -ENOMEM);
}

/* ---- Jobs ---- */

static void send_waiting(void *ctx)
{
    struct memcache_server *s = ctx;
    if (!s->waiting.first)
        return;
    if (s->state != MEMCACHE_UP) {
        connect_to(s); /* become_up() sends them */
        return;
    }
    while (s->waiting.first) {
        struct memcache_job *job = take(&s->waiting);
        mk_buf_add(&s->out, mk_buf_str(&job->bytes));
        mk_buf_free(&job->bytes);
        append(&s->sent, job);
    }
    flush(s);
}

static void tick_later(struct memcache_server *s)
{
    if (s->ticks || !s->n)
        return;
    s->ticks = true;
    mk_alarm_set(s->alarm, TICK_MS);
}

/* Replies come in their order: if the first is late, all are, and the connection is of no use. */
static void on_tick(void *ctx)
{
    struct memcache_server *s = ctx;
    uint64_t now = mk_worker_now_ms(s->worker);
    bool tries = s->state == MEMCACHE_CONNECTING || s->state == MEMCACHE_GREETING;
    s->ticks = false;
    if (tries && now - s->since_ms >= s->settings->timeout_ms)
        fail(s, -ETIMEDOUT, "it does not answer within Timeout");
    if (s->sent.first && s->sent.first->due_ms <= now)
        fail(s, -ETIMEDOUT, "no reply within Timeout");
    while (s->waiting.first && s->waiting.first->due_ms <= now)
        finish(s, &s->waiting, NULL, -ETIMEDOUT);
    if (s->waiting.first)
        connect_to(s);
    tick_later(s);
}

int memcache_server_add(struct memcache_server *s, struct memcache_job *job)
{
    uint64_t now = mk_worker_now_ms(s->worker);
    if (s->n >= s->settings->waiting_max)
        return -EBUSY;
    if (has_been_away(s) && now < s->retry_ms)
        return -ECONNREFUSED;
    job->due_ms = now + s->settings->timeout_ms;
    job->next = NULL;
    append(&s->waiting, job);
    s->n++;
    mk_turn_end_set(s->turn);
    tick_later(s);
    return 0;
}

/* ---- Its life ---- */

int memcache_server_open(struct memcache_server *s, struct mk_worker *w,
                         const struct memcache_settings *settings, struct mk_upstream *upstream)
{
    s->settings = settings;
    s->upstream = upstream;
    s->worker = w;
    s->waiting.end = &s->waiting.first;
    s->sent.end = &s->sent.first;
    s->turn = mk_turn_end_new(w, send_waiting, s);
    s->alarm = mk_alarm_new(w, on_tick, s);
    return s->turn && s->alarm ? 0 : -ENOMEM;
}

void memcache_server_close(struct memcache_server *s)
{
    if (!s->settings)
        return;
    fail_all(s, &s->sent, -ECANCELED);
    fail_all(s, &s->waiting, -ECANCELED);
    drop(s);
    mk_turn_end_free(s->turn);
    mk_alarm_free(s->alarm);
}
