/* SPDX-License-Identifier: Apache-2.0 */
/* monkey-otlp: reads spans from the pipe on standard input, and sends them to a collector in batches. The plugin passes
 * the settings in variables, most of which OpenTelemetry has named. */
#include <errno.h>
#include <fcntl.h>
#include <monkey/clock.h>
#include <monkey/text.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "batch.h"
#include "collector.h"
#include "report.h"

enum {
    BATCH = 512,
    BACKOFF_MS = 1000,
    BACKOFF_MAX_MS = 30000,
    DRAIN_MS = 5000, /* time to export the rest */
    REPORT_MS = 200, /* minimum interval of the counters */
    LOG_MS = 60000,
    LOGS_MAX = 4, /* changes of the state that are logged within LOG_MS */
    IDLE_MS = 60000,
};

enum export_state { EXPORTS = 0, FAILS, IS_REJECTED };

struct exporter {
    struct otlp_queue queue;
    struct otlp_collector collector;
    mk_str service;
    uint64_t interval_ms;
    size_t n_sent;       /* spans of the current request, which are at the front of the queue */
    uint64_t oldest_ms;  /* when the queue became non-empty */
    uint64_t retry_ms;   /* no request before this time */
    uint64_t backoff_ms; /* delay after the next failure */
    uint64_t drain_ms;   /* when to exit at the latest; 0: not draining */
    uint64_t report_ms;  /* when the counters were reported */
    int signal_fd;       /* receives SIGTERM */
    bool is_input_over, is_report_due;
    enum export_state state;
    uint64_t n_read, n_exported, n_lost;
    uint64_t logs_ms; /* begin of the minute in which `n_logs` changes of `state` were logged */
    unsigned n_logs;
    uint64_t n_unlogged; /* changes since the last one that was logged */
};

static uint64_t now_ms(void)
{
    return mk_clock_us() / 1000;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    uint64_t n;
    const char *text = getenv(name);
    return text && mk_num_parse(mk_str_from_c(text), &n) ? n : otherwise;
}

/* ---- Results ---- */

static void log_state(struct exporter *x, const struct otlp_reply *reply)
{
    const char *url = x->collector.url;
    int len = (int)strcspn(url, "?"); /* the query may contain credentials */
    char changes[64] = "";
    if (x->n_unlogged)
        (void)snprintf(changes, sizeof changes, " (%llu changes were not logged)",
                       (unsigned long long)x->n_unlogged);
    if (x->state == EXPORTS)
        otlp_report_log(
            MK_LOG_INFO,
            "the collector %.*s accepts spans again; monkey_otlp_spans_lost_total counts the lost ones%s",
            len, url, changes);
    else if (x->state == IS_REJECTED)
        otlp_report_log(MK_LOG_WARN, "the collector %.*s rejects spans, which are lost: status %u: %.300s%s",
                        len, url, reply->status, reply->text, changes);
    else if (reply->status)
        otlp_report_log(MK_LOG_WARN, "the collector %.*s accepts no spans now: status %u; retrying%s", len,
                        url, reply->status, changes);
    else
        otlp_report_log(MK_LOG_WARN, "cannot send spans to the collector %.*s: %s; retrying%s", len, url,
                        reply->text, changes);
}

/* Logs at most LOGS_MAX changes in LOG_MS: a collector that fails now and then must not fill the log. */
static void change_state(struct exporter *x, enum export_state state, const struct otlp_reply *reply)
{
    uint64_t now = now_ms();
    if (state == x->state)
        return;
    x->state = state;
    if (now >= x->logs_ms + LOG_MS) {
        x->logs_ms = now;
        x->n_logs = 0;
    }
    if (x->n_logs >= LOGS_MAX) {
        x->n_unlogged++;
        return;
    }
    log_state(x, reply);
    x->n_logs++;
    x->n_unlogged = 0;
}

static void finish_batch(struct exporter *x, uint64_t n_lost)
{
    n_lost = n_lost < x->n_sent ? n_lost : x->n_sent;
    x->n_exported += x->n_sent - n_lost;
    x->n_lost += n_lost;
    x->is_report_due = true;
    otlp_queue_remove(&x->queue, x->n_sent);
    x->n_sent = 0;
    x->backoff_ms = BACKOFF_MS;
    x->oldest_ms = now_ms();
}

/* The collector is unavailable: the batch stays in the queue. The delay varies, so that servers do not retry at the same
 * time. */
static void schedule_retry(struct exporter *x, uint64_t retry_s)
{
    uint32_t chance;
    mk_random(&chance, sizeof chance);
    uint64_t delay = retry_s ? retry_s * 1000 : x->backoff_ms + chance % (x->backoff_ms / 4);
    x->backoff_ms = x->backoff_ms * 2 < BACKOFF_MAX_MS ? x->backoff_ms * 2 : BACKOFF_MAX_MS;
    x->retry_ms = now_ms() + delay;
    x->n_sent = 0;
}

/* The statuses after which the specification of OTLP demands a retry. */
static bool is_retryable(unsigned status)
{
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

static void handle_reply(struct exporter *x, const struct otlp_reply *reply)
{
    if (is_retryable(reply->status)) {
        change_state(x, FAILS, reply);
        schedule_retry(x, reply->retry_s);
    } else if (reply->status >= 200 && reply->status < 300) {
        change_state(x, reply->n_rejected ? IS_REJECTED : EXPORTS, reply);
        finish_batch(x, reply->n_rejected);
    } else {
        change_state(x, IS_REJECTED, reply);
        finish_batch(x, x->n_sent);
    }
}

/* ---- The loop ---- */

static void start_request(struct exporter *x)
{
    x->n_sent = x->queue.n < BATCH ? x->queue.n : BATCH;
    mk_buf_clear(&x->collector.body);
    otlp_batch_write(&x->collector.body, &x->queue, x->n_sent, x->service);
    if (!otlp_collector_send(&x->collector)) {
        otlp_report_log(MK_LOG_ERROR, "no memory for a request to the collector: %zu spans are lost",
                        x->n_sent);
        finish_batch(x, x->n_sent);
    }
}

/* When the next request is due; UINT64_MAX: not before more spans arrive. */
static uint64_t next_request_ms(const struct exporter *x)
{
    if (x->collector.is_sending || x->queue.n == 0)
        return UINT64_MAX;
    uint64_t due = x->queue.n >= BATCH || x->drain_ms || x->is_input_over ? 0 : x->oldest_ms + x->interval_ms;
    return due > x->retry_ms ? due : x->retry_ms;
}

static void read_spans(struct exporter *x)
{
    bool was_empty = x->queue.n == 0;
    long n = otlp_queue_read(&x->queue, STDIN_FILENO);
    if (n < 0)
        x->is_input_over = true;
    if (n > 0) {
        x->n_read += (uint64_t)n;
        x->is_report_due = true;
        if (was_empty)
            x->oldest_ms = now_ms();
    }
}

static void report_counters(struct exporter *x, uint64_t now)
{
    if (!x->is_report_due || now < x->report_ms + REPORT_MS)
        return;
    otlp_report_counters(x->n_read, x->n_exported, x->n_lost);
    x->is_report_due = false;
    x->report_ms = now;
}

static int timeout_ms(const struct exporter *x, uint64_t now)
{
    uint64_t due = next_request_ms(x), end = now + IDLE_MS;
    if (x->is_report_due && x->report_ms + REPORT_MS < end)
        end = x->report_ms + REPORT_MS;
    if (x->drain_ms && x->drain_ms < end)
        end = x->drain_ms;
    if (due < end)
        end = due;
    return end > now ? (int)(end - now) : 0;
}

static bool is_finished(struct exporter *x, uint64_t now)
{
    struct signalfd_siginfo info;
    bool is_told = read(x->signal_fd, &info, sizeof info) > 0; /* always, because the loop waits for it */
    if (is_told && !x->drain_ms)
        x->drain_ms = now + DRAIN_MS;
    bool is_empty = x->queue.n == 0 && !x->collector.is_sending;
    return (x->is_input_over && is_empty) || (x->drain_ms && (is_empty || now >= x->drain_ms));
}

static void run(struct exporter *x)
{
    for (;;) {
        struct otlp_reply reply;
        uint64_t now;
        if (!x->is_input_over)
            read_spans(x);
        now = now_ms();
        if (is_finished(x, now))
            return;
        if (next_request_ms(x) <= now)
            start_request(x);
        report_counters(x, now);
        bool can_read = !x->is_input_over && x->queue.n < x->queue.capacity;
        int fds[] = {x->signal_fd, STDIN_FILENO};
        if (otlp_collector_wait(&x->collector, fds, can_read ? 2 : 1, timeout_ms(x, now), &reply))
            handle_reply(x, &reply);
    }
}

static int open_signal_fd(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(void)
{
    static struct exporter x;
    const char *service = getenv("OTEL_SERVICE_NAME");
    x.service = service ? mk_str_from_c(service) : MK_STR("monkey");
    x.interval_ms = setting("OTEL_BSP_SCHEDULE_DELAY", 5000);
    x.backoff_ms = BACKOFF_MS;
    x.signal_fd = open_signal_fd();
    if (x.signal_fd < 0 || fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) < 0 ||
        !otlp_queue_init(&x.queue, setting("OTEL_BSP_MAX_QUEUE_SIZE", 2048)) ||
        !otlp_collector_open(&x.collector)) {
        otlp_report_log(MK_LOG_ERROR, "cannot start: %s", strerror(errno));
        return 1;
    }
    run(&x);
    x.n_lost += x.queue.n;
    otlp_report_counters(x.n_read, x.n_exported, x.n_lost);
    otlp_collector_close(&x.collector);
    otlp_queue_free(&x.queue);
    return 0;
}
