/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/load_generator.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "os/fd.h"
#include "pace/now.h"

/* TICK and STOPPED are in ns. If a timer fires more than STOPPED late, a signal must have stopped the
 * process. */
enum {
    BUFFER_SIZE = 256 * 1024,
    READS_PER_ITERATION = 4,
    OPENING_MAX = 64,
    TICK = 10000000,
    STOPPED = 1000000
};

/* Opens the file with this thread's run-queue wait time (schedstat): how long the thread was runnable while
 * other threads had the CPU. Returns -1 if the kernel does not record it. */
static int open_schedstat(void)
{
    return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

/* Returns ns since the start of the thread; 0 if unknown. */
static uint64_t read_schedstat(int fd)
{
    char buf[128];
    uint64_t ns;
    ssize_t n = fd < 0 ? -1 : pread(fd, buf, sizeof buf, 0);
    mk_str text = mk_str_of(buf, n > 0 ? (size_t)n : 0);
    (void)mk_str_word(&text); /* the time on the CPU comes first */
    return mk_num_parse(mk_str_word(&text), &ns) ? ns : 0;
}

mk_err pace_load_generator_init(struct pace_load_generator *l)
{
    struct mk_list *lists[] = {&l->closed, &l->idle, &l->busy, &l->again};
    l->buffer = NULL;
    l->connections = NULL;
    l->starved_fd = open_schedstat();
    mk_err e = pace_poller_init(&l->waiter, l->spins, false);
    if (e)
        return e;
    for (size_t i = 0; i < MK_LEN(lists); i++)
        mk_list_init(lists[i]);
    l->buffer = mk_mem_alloc(BUFFER_SIZE);
    l->connections = mk_mem_zalloc(l->n, sizeof *l->connections);
    if (!l->buffer || !l->connections)
        return -ENOMEM;
    for (unsigned i = 0; i < l->n; i++) {
        pace_connection_init(&l->connections[i]);
        mk_list_add_last(&l->closed, &l->connections[i].link);
    }
    return 0;
}

void pace_load_generator_fini(struct pace_load_generator *l)
{
    for (unsigned i = 0; l->connections && i < l->n; i++)
        pace_connection_close(&l->connections[i], false);
    mk_mem_free(l->connections);
    mk_mem_free(l->buffer);
    mk_fd_close(&l->starved_fd);
    pace_poller_fini(&l->waiter);
}

/* ---- End of a request ---- */

static void move_connection_to_list(struct pace_connection *c, struct mk_list *to)
{
    mk_list_remove(&c->link);
    mk_list_add_last(to, &c->link);
}

/* Returns the earliest time at which the event may have happened. The time since then is pace's own delay. */
static uint64_t event_time(const struct pace_load_generator *l, const struct pace_connection *c)
{
    return l->seen > c->begun ? l->seen : c->begun;
}

/* Returns pace's own delay. Reading the response is not part of it, because every client must do that. */
static uint64_t client_delay(const struct pace_load_generator *l, const struct pace_connection *c)
{
    uint64_t come = event_time(l, c);
    return c->own + (l->at > come ? l->at - come : 0);
}

static void release_connection(struct pace_load_generator *l, struct pace_connection *c, struct mk_list *to)
{
    if (c->phase != PACE_IDLE)
        l->n_busy--;
    c->free_since = event_time(l, c);
    move_connection_to_list(c, to);
}

static void close_connection(struct pace_load_generator *l, struct pace_connection *c, bool hard)
{
    release_connection(l, c, &l->closed);
    pace_connection_close(c, hard);
}

static void fail_request(struct pace_load_generator *l, struct pace_connection *c,
                         enum pace_error_class class, const char *why)
{
    if (c->phase == PACE_CONNECTING || class == PACE_CONNECT)
        l->tally->unsent++;
    if (class == PACE_TIMEOUT)
        pace_tally_add_timeout(l->tally, l->timeout, client_delay(l, c));
    pace_tally_add_error(l->tally, class, "%s", why);
    close_connection(l, c, true);
}

static void finish_response(struct pace_load_generator *l, struct pace_connection *c, bool more)
{
    char why[PACE_RESPONSE_CHECK_ERROR_MAX] = "";
    struct pace_response_check *r = l->reference;
    enum pace_verdict verdict = r->recorded ? pace_response_check_verify(r, &c->comparison, &c->reply, why)
                                            : pace_response_check_end_recording(r, &c->reply, why);
    bool keep = c->reply.head.keep_alive && !l->closes && !more && c->phase == PACE_WAITING;
    release_connection(l, c, keep ? &l->idle : &l->closed);
    if (more)
        l->tally->stray++;
    if (verdict != PACE_RESPONSE_OK) {
        pace_tally_add_error(l->tally, verdict == PACE_RESPONSE_WRONG_STATUS ? PACE_STATUS : PACE_CONTENT,
                             "%s", why);
    } else {
        pace_tally_add_response(l->tally, pace_now() - c->due, client_delay(l, c));
    }
    c->used = true;
    c->phase = PACE_IDLE;
    if (keep)
        pace_connection_reset_response(c);
    else
        pace_connection_close(c, false);
}

/* ---- Sending ---- */

static void connect_for_request(struct pace_load_generator *l, struct pace_connection *c)
{
    mk_err e = pace_connection_open(c, &l->address, &l->waiter);
    l->tally->opened++;
    if (e)
        fail_request(l, c, PACE_CONNECT, mk_err_text(e));
}

/* A server may close an idle connection while the next request is on its way. Such a request is retried once
 * on a new connection (RFC 9112, section 9.3.1). */
static void retry_or_fail(struct pace_load_generator *l, struct pace_connection *c,
                          enum pace_error_class class, const char *why)
{
    if (!c->used || c->retried || c->reply.begun) {
        fail_request(l, c, class, why);
        return;
    }
    l->tally->retried++;
    c->retried = true;
    pace_connection_close(c, false);
    connect_for_request(l, c);
}

static void send_request(struct pace_load_generator *l, struct pace_connection *c)
{
    mk_err e = pace_connection_send(c, l->request);
    if (e)
        retry_or_fail(l, c, PACE_WRITE, mk_err_text(e));
}

static void start_request(struct pace_load_generator *l, struct pace_connection *c, uint64_t due,
                          uint64_t now)
{
    bool queued = c->free_since > due;
    uint64_t possible = queued ? c->free_since : due, late = now > possible ? now - possible : 0;
    uint64_t waited = possible - due;
    l->tally->asked++;
    l->tally->queued += queued;
    pace_histogram_add(&l->tally->late, late);
    l->n_busy++;
    move_connection_to_list(c, &l->busy);
    /* A request queued behind one that pace delayed inherits that delay. */
    c->own = late + (c->own < waited ? c->own : waited);
    c->due = due;
    c->begun = now;
    c->retried = false;
    if (c->phase == PACE_CLOSED) {
        connect_for_request(l, c);
    } else {
        c->phase = PACE_SENDING;
        send_request(l, c);
    }
}

static struct pace_connection *pick_connection(struct pace_load_generator *l)
{
    struct mk_list *first = l->opens ? &l->closed : &l->idle, *second = l->opens ? &l->idle : &l->closed;
    struct mk_list *from = mk_list_empty(first) ? second : first;
    if (l->n_busy >= l->busy_max || mk_list_empty(from))
        return NULL;
    return MK_LIST_ENTRY(from->next, struct pace_connection, link);
}

static void time_out_unsent_request(struct pace_load_generator *l, uint64_t now)
{
    pace_tally_add_timeout(l->tally, l->timeout, now > l->seen ? now - l->seen : 0);
    l->tally->asked++;
    l->tally->queued++;
    l->tally->unsent++;
    pace_tally_add_error(l->tally, PACE_TIMEOUT, "not sent in time: all %u connections were busy", l->n);
}

/* Assigns due requests to free connections; returns the current time. */
static uint64_t assign_due_requests(struct pace_load_generator *l)
{
    for (;;) {
        uint64_t due, now = pace_now();
        if (*l->stop)
            pace_schedule_stop(l->schedule);
        if (!pace_schedule_next(l->schedule, now, &due) || due > now)
            return now;
        struct pace_connection *c = NULL;
        bool expired = now - due >= l->timeout;
        if (!expired && !(c = pick_connection(l)))
            return now;
        pace_schedule_advance(l->schedule);
        if (expired)
            time_out_unsent_request(l, now);
        else
            start_request(l, c, due, now);
    }
}

/* ---- Receiving ---- */

static bool check_body_data(struct pace_load_generator *l, struct pace_connection *c, mk_str data)
{
    char why[PACE_RESPONSE_CHECK_ERROR_MAX];
    if (pace_response_check_body(l->reference, &c->comparison, &c->reply, data, why))
        return true;
    fail_request(l, c, PACE_CONTENT, why);
    return false;
}

static void parse_response(struct pace_load_generator *l, struct pace_connection *c, mk_str in)
{
    char why[PACE_RESPONSE_CHECK_ERROR_MAX];
    mk_str data;
    for (;;) {
        switch (mk_response_parser_next(&c->reply, &in, &data)) {
        case MK_RESPONSE_PARSER_HEAD:
        case MK_RESPONSE_PARSER_TRAILERS:
            break;
        case MK_RESPONSE_PARSER_DATA:
            if (!check_body_data(l, c, data))
                return;
            break;
        case MK_RESPONSE_PARSER_END:
            finish_response(l, c, in.len > 0);
            return;
        case MK_RESPONSE_PARSER_ERROR:
            snprintf(why, sizeof why, "not an HTTP/1 response: %s", c->reply.problem);
            fail_request(l, c, PACE_READ, why);
            return;
        case MK_RESPONSE_PARSER_MORE:
            return;
        }
    }
}

static void on_eof(struct pace_load_generator *l, struct pace_connection *c)
{
    if (c->phase == PACE_IDLE)
        close_connection(l, c, false);
    else if (mk_response_parser_eof(&c->reply) == MK_RESPONSE_PARSER_END)
        finish_response(l, c, false);
    else
        retry_or_fail(l, c, PACE_READ, c->reply.problem);
}

static void handle_received_bytes(struct pace_load_generator *l, struct pace_connection *c, mk_str in)
{
    l->tally->bytes += in.len;
    if (c->phase != PACE_IDLE) {
        parse_response(l, c, in);
        return;
    }
    l->tally->stray++;
    close_connection(l, c, true);
}

/* `all`: reads until EAGAIN, because edge-triggered epoll may not report this data again. */
static void receive_bytes(struct pace_load_generator *l, struct pace_connection *c, bool all)
{
    for (unsigned turn = 0; c->phase > PACE_CONNECTING; turn++) {
        if (turn == READS_PER_ITERATION) {
            mk_list_remove(&c->again);
            mk_list_add_last(&l->again, &c->again);
            return;
        }
        ssize_t n = recv(c->fd, l->buffer, BUFFER_SIZE, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0 && c->phase == PACE_IDLE)
            close_connection(l, c, false);
        else if (n < 0)
            retry_or_fail(l, c, PACE_READ, mk_err_text(mk_err_last()));
        else if (n == 0)
            on_eof(l, c);
        else
            handle_received_bytes(l, c, mk_str_of(l->buffer, (size_t)n));
        if (n < BUFFER_SIZE && !all)
            return;
    }
}

static void on_connection_events(struct pace_load_generator *l, struct pace_connection *c, uint32_t events)
{
    if (c->phase == PACE_CONNECTING) {
        if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
            return;
        mk_err e = pace_connection_finish_open(c);
        if (e) {
            fail_request(l, c, PACE_CONNECT, mk_err_text(e));
            return;
        }
        send_request(l, c);
    } else if (c->phase == PACE_SENDING && (events & EPOLLOUT)) {
        send_request(l, c);
    }
    if (events & ~(uint32_t)EPOLLOUT)
        receive_bytes(l, c, events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
}

/* ---- The loop ---- */

static struct pace_connection *oldest_active_connection(const struct pace_load_generator *l)
{
    return mk_list_empty(&l->busy) ? NULL : MK_LIST_ENTRY(l->busy.next, struct pace_connection, link);
}

/* Returns true if a timeout freed a connection. */
static bool expire_timeouts(struct pace_load_generator *l, uint64_t now)
{
    struct pace_connection *c;
    bool any = false;
    l->at = now;
    while ((c = oldest_active_connection(l)) && now > c->due && now - c->due >= l->timeout) {
        any = true;
        fail_request(l, c, PACE_TIMEOUT,
                     c->phase == PACE_CONNECTING ? "no connection in time"
                     : c->reply.begun            ? "the response did not end in time"
                                                 : "no response in time");
    }
    return any;
}

/* Returns the next time at which the loop must wake up even if there is no event. */
static uint64_t next_wakeup(const struct pace_load_generator *l, uint64_t now)
{
    const struct pace_connection *c = oldest_active_connection(l);
    uint64_t due, next = c ? c->due + l->timeout : PACE_NEVER;
    if (!pace_schedule_next(l->schedule, now, &due))
        return next;
    due = due > now ? due : due + l->timeout;
    return due < next ? due : next;
}

/* Continues to read from connections whose data the last loop iteration did not read completely. */
static void continue_reading_connections(struct pace_load_generator *l)
{
    struct mk_list turn;
    mk_list_init(&turn);
    while (!mk_list_empty(&l->again)) {
        struct mk_list *first = l->again.next;
        mk_list_remove(first);
        mk_list_add_last(&turn, first);
    }
    while (!mk_list_empty(&turn)) {
        struct pace_connection *c = MK_LIST_ENTRY(turn.next, struct pace_connection, again);
        mk_list_remove(&c->again);
        l->at = pace_now();
        receive_bytes(l, c, true);
    }
}

static uint64_t read_run_delay(struct pace_load_generator *l)
{
    uint64_t before = l->starved, now = read_schedstat(l->starved_fd);
    l->starved = now > before ? now : before;
    l->tally->starved += l->starved - before;
    return l->starved - before;
}

/* While other processes had the CPU, or a signal had stopped pace, events may already have been pending, so
 * they count as having arrived at the beginning of that time. */
static void sleep_until_event(struct pace_load_generator *l, uint64_t from, size_t *n)
{
    *n = pace_poller_wait(&l->waiter, from, l->planned);
    uint64_t woke = pace_now(), starved = read_run_delay(l),
             ready = starved < woke - from ? woke - starved : from;
    bool late = woke > l->planned && woke - l->planned > STOPPED,
         signaled = *n == 0 && (woke < l->planned || late);
    l->tally->waited += (woke < l->planned ? woke : l->planned) - from;
    l->looked = l->seen = signaled ? from : ready < l->planned ? ready : l->planned;
    if (signaled)
        *n = pace_poller_wait(&l->waiter, woke, woke);
}

/* First polls without waiting: events that are already pending have arrived since the last poll. */
static size_t wait_for_events(struct pace_load_generator *l)
{
    uint64_t from = pace_now();
    size_t n = pace_poller_wait(&l->waiter, from, from);
    l->seen = l->looked;
    l->looked = from;
    if (n > 0 || l->planned <= from)
        return n;
    if (l->spins)
        l->tally->waited += pace_now() - from;
    else
        sleep_until_event(l, from, &n);
    return n;
}

/* Waits at most TICK, so that pace notices when it was suspended (SIGSTOP): the timer then fires late. */
static void wait_and_handle_events(struct pace_load_generator *l, uint64_t now)
{
    uint64_t until = mk_list_empty(&l->again) ? next_wakeup(l, now) : now;
    l->planned = until < now + TICK ? until : now + TICK;
    size_t n = wait_for_events(l);
    for (size_t i = 0; i < n; i++) {
        l->at = pace_now();
        on_connection_events(l, l->waiter.events[i].data.ptr, l->waiter.events[i].events);
    }
    continue_reading_connections(l);
}

static bool is_load_over(const struct pace_load_generator *l, uint64_t now)
{
    uint64_t due;
    return mk_list_empty(&l->busy) && !pace_schedule_next(l->schedule, now, &due);
}

static void run_load(struct pace_load_generator *l, struct pace_schedule *s, uint64_t end,
                     struct pace_tally *t)
{
    l->schedule = s;
    l->tally = t;
    pace_tally_init(t);
    l->starved = read_schedstat(l->starved_fd);
    t->start = l->looked = l->seen = pace_now();
    pace_schedule_start(s, t->start, end == PACE_NEVER ? end : t->start + end);
    for (;;) {
        uint64_t now = t->end = assign_due_requests(l);
        if (expire_timeouts(l, now))
            continue; /* the timeout may have freed a connection for a queued request */
        if (is_load_over(l, now))
            break;
        wait_and_handle_events(l, now);
    }
    (void)read_run_delay(l);
    if (end != PACE_NEVER && !*l->stop && t->end < s->end) {
        t->waited += s->end - t->end;
        t->end = s->end;
    }
}

void pace_load_generator_send_one(struct pace_load_generator *l, struct pace_tally *t)
{
    struct pace_schedule one;
    pace_schedule_init(&one, PACE_CLOSED_LOOP, 0, 0);
    one.max = 1;
    l->busy_max = 1;
    run_load(l, &one, PACE_NEVER, t);
}

void pace_load_generator_connect_all(struct pace_load_generator *l, struct pace_tally *t)
{
    struct pace_schedule some;
    pace_schedule_init(&some, PACE_CLOSED_LOOP, 0, 0);
    some.max = 0;
    MK_LIST_EACH_SAFE (at, &l->closed)
        some.max++;
    l->busy_max = OPENING_MAX;
    l->opens = true;
    run_load(l, &some, PACE_NEVER, t);
    l->opens = false;
}

void pace_load_generator_run(struct pace_load_generator *l, struct pace_schedule *s, uint64_t duration,
                             struct pace_tally *t)
{
    l->busy_max = l->n;
    run_load(l, s, duration, t);
}
