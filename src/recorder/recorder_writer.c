/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder/recorder_writer.h"

#include <monkey/attempt.h>
#include <monkey/clock.h>
#include <unistd.h>

#include "web/access_record.h"
#include "web/exchange.h"
#include "web/route.h"

enum { SKIPPED_MAX = 16, OFFSET_TRIES = 3, SHORT_MAX = 31 /* one less than a power of 2 */ };

struct mk_recorder_writer {
    struct mk_recorder_slot *slot;
    uint32_t n_requests, n_all;        /* records of the first ring, and of both */
    uint64_t version;                  /* of the last change */
    uint64_t clock_ms, unix_offset_ms; /* when the offset between the clocks was determined, and its value */
    uint64_t slow_ms;
    uint32_t pid;
    bool with_query;
    struct mk_exchange **holders; /* for each record in flight: its request */
};

/* ---- Records ---- */

static inline struct mk_recorder_record *record_at(const struct mk_recorder_writer *w, uint32_t at)
{
    return mk_recorder_slot_records(w->slot) + at;
}

/* Returns the version that the record has after the change. */
static inline uint64_t begin_change(struct mk_recorder_writer *w, struct mk_recorder_record *r)
{
    uint64_t version = w->version += 2;
    __atomic_store_n(&r->version, version - 1, __ATOMIC_RELAXED);
    r->check = version - 1;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return version;
}

static inline void end_change(struct mk_recorder_record *r, uint64_t version)
{
    r->check = version;
    __atomic_store_n(&r->version, version, __ATOMIC_RELEASE);
}

/* Copies up to SHORT_MAX bytes: a call of memcpy() would take longer. */
static inline void copy_short(char *to, const char *from, size_t n)
{
    if (n >= 8) {
        if (MK_UNLIKELY(n > 16)) {
            memcpy(to, from, 16);
            from += n - 16, to += n - 16, n = 16;
        }
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else if (n) {
        to[0] = from[0];
        to[n / 2] = from[n / 2];
        to[n - 1] = from[n - 1];
    }
}

/* Appends a text at `end`. Returns the new end. */
static inline char *put_short_text(struct mk_recorder_record *r, enum mk_recorder_text which, char *end,
                                   mk_str text)
{
    r->len[which] = (uint8_t)text.len;
    copy_short(end, text.p, text.len);
    return end + text.len;
}

static char *put_text(struct mk_recorder_record *r, enum mk_recorder_text which, char *end, mk_str text,
                      size_t max)
{
    size_t len = text.len < max ? text.len : max;
    r->len[which] = (uint8_t)len;
    if (MK_LIKELY(len <= SHORT_MAX))
        copy_short(end, text.p, len);
    else
        memcpy(end, text.p, len);
    return end + len;
}

static uint32_t stage_us(uint64_t began_us, uint64_t at_us)
{
    uint64_t us = at_us > began_us ? at_us - began_us : 0;
    return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

/* The time until a handler was called. */
static inline uint32_t waited_us(uint64_t ms)
{
    return MK_LIKELY(ms < UINT32_MAX / 1000) ? (uint32_t)ms * 1000 : UINT32_MAX;
}

/* The next record of the second ring. It skips at most 16 records in flight, so that a request never takes long. */
MK_COLD static uint32_t next_failure(struct mk_recorder_writer *w)
{
    uint32_t at = w->slot->next_failure;
    for (unsigned i = 0; i < SKIPPED_MAX && record_at(w, at)->state == MK_RECORDER_OPEN; i++)
        at = at + 1 < w->n_all ? at + 1 : w->n_requests;
    w->slot->next_failure = at + 1 < w->n_all ? at + 1 : w->n_requests;
    if (record_at(w, at)->state == MK_RECORDER_OPEN && w->holders[at])
        w->holders[at]->record = 0;
    w->holders[at] = NULL;
    return at;
}

/* Moves a record in flight to the second ring. Returns its new index. */
MK_COLD static uint32_t move_to_failures(struct mk_recorder_writer *w, uint32_t from)
{
    uint32_t to = next_failure(w);
    struct mk_recorder_record *source = record_at(w, from), *target = record_at(w, to);
    uint64_t version = begin_change(w, target);
    size_t start = offsetof(struct mk_recorder_record, began_ms),
           end = offsetof(struct mk_recorder_record, check);
    memcpy((char *)target + start, (char *)source + start, end - start);
    end_change(target, version);
    version = begin_change(w, source);
    source->state = MK_RECORDER_EMPTY;
    end_change(source, version);
    w->holders[to] = w->holders[from];
    w->holders[from] = NULL;
    if (w->holders[to])
        w->holders[to]->record = 1 + to;
    return to;
}

/* The process may lose the CPU between reading the two clocks: the least of several differences is the most precise. */
MK_COLD static void update_unix_offset(struct mk_recorder_writer *w, uint64_t now_ms)
{
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < OFFSET_TRIES; i++) {
        uint64_t clock_ms = mk_clock_ms(), offset = mk_clock_unix_ms() - clock_ms;
        least = offset < least ? offset : least;
    }
    w->clock_ms = now_ms;
    w->unix_offset_ms = least;
}

/* The offset between the clocks is determined once a second. */
static inline bool has_old_offset(const struct mk_recorder_writer *w, uint64_t now_ms)
{
    return now_ms - w->clock_ms >= 1000;
}

/* Writes the properties that a request has before it ends, except for the texts. */
static inline void put_request(struct mk_recorder_writer *w, struct mk_recorder_record *r,
                               const struct mk_request *request)
{
    r->began_ms = request->now_ms + w->unix_offset_ms;
    r->handler_us = r->connect_us = r->first_byte_us = r->attempts = 0;
    r->http_version = (uint8_t)request->version;
    r->method = (uint8_t)request->received.method;
    r->is_tls = mk_request_is_secure(request);
    memset(r->len, 0, sizeof r->len);
    r->client = *request->peer;
    r->pid = w->pid;
}

/* Are the texts of the target short? */
static inline bool has_short_target(const struct mk_recorder_writer *w, const struct mk_request *request)
{
    return !w->with_query && (request->host.len | request->received.path.len) <= SHORT_MAX;
}

/* Writes the host and the path, which are short. Returns the end of the texts. */
static inline char *put_short_target(struct mk_recorder_record *r, const struct mk_request *request)
{
    char *end = put_short_text(r, MK_RECORDER_HOST, r->text, request->host);
    return put_short_text(r, MK_RECORDER_PATH, end, request->received.path);
}

MK_NOINLINE static char *put_target(const struct mk_recorder_writer *w, struct mk_recorder_record *r,
                                    const struct mk_request *request)
{
    mk_str path = w->with_query ? request->target_text : request->received.path;
    char *end = put_text(r, MK_RECORDER_HOST, r->text, request->host, MK_RECORDER_HOST_MAX);
    return put_text(r, MK_RECORDER_PATH, end, path, MK_RECORDER_PATH_MAX);
}

/* Returns the index of the record to overwrite. */
static inline uint32_t next_request(struct mk_recorder_writer *w)
{
    uint32_t at = w->slot->next_request;
    w->slot->next_request = at + 1 < w->n_requests ? at + 1 : 0;
    return at;
}

static inline bool is_next_open(const struct mk_recorder_writer *w)
{
    return record_at(w, w->slot->next_request)->state == MK_RECORDER_OPEN;
}

/* Is there a rare task before the next record can be written? */
static inline bool is_prepared(const struct mk_recorder_writer *w, uint64_t now_ms)
{
    return !has_old_offset(w, now_ms) && !is_next_open(w);
}

MK_COLD static void prepare(struct mk_recorder_writer *w, uint64_t now_ms)
{
    if (has_old_offset(w, now_ms))
        update_unix_offset(w, now_ms);
    if (is_next_open(w))
        (void)move_to_failures(w, w->slot->next_request);
}

/* The common cases are functions that call no others, so they need not save registers. */

static inline void begin_record(struct mk_recorder_writer *w, struct mk_request *request, bool is_short)
{
    struct mk_exchange *x = mk_exchange_of(request);
    uint32_t at = next_request(w);
    struct mk_recorder_record *r = record_at(w, at);
    uint64_t version = begin_change(w, r);
    put_request(w, r, request);
    r->duration_us = r->received = r->sent = 0;
    r->handler_us = waited_us(*request->web->now_ms - request->now_ms);
    r->status = 0;
    r->outcome = 0;
    r->state = MK_RECORDER_OPEN;
    if (is_short)
        (void)put_short_target(r, request);
    else
        (void)put_target(w, r, request);
    end_change(r, version);
    w->holders[at] = x;
    x->record = 1 + at;
}

MK_NOINLINE static void begin_rare_record(struct mk_recorder_writer *w, struct mk_request *request)
{
    prepare(w, request->now_ms);
    begin_record(w, request, false);
}

void mk_recorder_writer_begin(struct mk_request *request, void *writer)
{
    struct mk_recorder_writer *w = writer;
    if (mk_exchange_of(request)->record)
        return;
    if (MK_LIKELY(has_short_target(w, request) && is_prepared(w, request->now_ms)))
        begin_record(w, request, true);
    else
        begin_rare_record(w, request);
}

/* ---- The end ---- */

/* The clock of the loop does not advance while a handler runs. */
static inline uint64_t handled_ms(const struct mk_request *request)
{
    uint64_t now_ms = mk_clock_ms();
    return MK_LIKELY(now_ms > request->now_ms) ? now_ms - request->now_ms : 0;
}

/* The last attempt counts. Times of attempts have a higher resolution. */
static void put_attempts(struct mk_recorder_record *r, const struct mk_request *request,
                         const struct mk_attempt *a)
{
    uint64_t began_us = request->now_ms * 1000;
    for (; a->next; a = a->next)
        r->attempts++;
    r->attempts++;
    r->connect_us = a->connected_us ? stage_us(began_us, a->connected_us) : 0;
    r->first_byte_us = a->first_byte_us ? stage_us(began_us, a->first_byte_us) : 0;
}

/* The duration is not less than that of the attempts. */
MK_COLD static uint64_t attempts_us(const struct mk_request *request, uint64_t duration_us)
{
    const struct mk_attempt *a = mk_request_attempts(request);
    if (!a)
        return duration_us;
    uint64_t first_us = a->began_us;
    while (a->next)
        a = a->next;
    uint64_t all_us = a->ended_us > first_us ? a->ended_us - first_us : 0,
             byte_us = a->first_byte_us ? stage_us(request->now_ms * 1000, a->first_byte_us) : 0;
    duration_us = duration_us > all_us ? duration_us : all_us;
    return duration_us > byte_us ? duration_us : byte_us;
}

static inline void put_result(struct mk_recorder_record *r, const struct mk_access_record *record,
                              enum mk_outcome outcome, uint64_t duration_us)
{
    r->duration_us = duration_us;
    r->received = record->content_received;
    r->sent = record->content_sent;
    r->status = (uint16_t)record->status;
    r->outcome = (uint8_t)outcome;
    r->state = MK_RECORDER_ENDED;
}

MK_COLD static char *put_rare_texts(struct mk_recorder_record *r, const struct mk_request *request, char *end)
{
    const struct mk_attempt *a = mk_request_attempts(request);
    if (a)
        put_attempts(r, request, a);
    while (a && a->next)
        a = a->next;
    end = put_text(r, MK_RECORDER_ID, end, mk_request_known_id(request), MK_RECORDER_ID_MAX);
    return put_text(r, MK_RECORDER_UPSTREAM, end, a ? a->server : MK_STR_NULL, MK_RECORDER_UPSTREAM_MAX);
}

MK_NOINLINE static void put_result_texts(struct mk_recorder_record *r, const struct mk_access_record *record,
                                         char *end)
{
    const struct mk_request *request = record->request;
    if (request->extras)
        end = put_rare_texts(r, request, end);
    if (request->route)
        end = put_text(r, MK_RECORDER_ROUTE, end, request->route->pattern.text, MK_RECORDER_ROUTE_MAX);
    if (record->reason || record->outcome != MK_OUTCOME_OK)
        (void)put_text(r, MK_RECORDER_REASON, end, mk_str_from_c(mk_access_record_reason(record)),
                       MK_RECORDER_REASON_MAX);
}

/* Does the record belong into the second ring, because the request has failed or was slow? */
static inline bool is_failure(const struct mk_recorder_writer *w, const struct mk_access_record *record,
                              uint64_t duration_ms)
{
    return record->status - 1 >= 499 || record->outcome > MK_OUTCOME_REJECTED ||
           (MK_UNLIKELY(duration_ms >= w->slow_ms) && record->status != 101);
}

/* Has the request a route of a short name, and no other texts? */
static inline bool has_only_route(const struct mk_access_record *record)
{
    const struct mk_request *request = record->request;
    return !((uintptr_t)request->extras | (uintptr_t)record->reason | record->outcome) && request->route &&
           request->route->pattern.text.len <= SHORT_MAX;
}

MK_NOINLINE static void end_rare_record(struct mk_recorder_writer *w, const struct mk_access_record *record)
{
    const struct mk_request *request = record->request;
    prepare(w, request->now_ms);
    uint32_t at = is_failure(w, record, record->duration_ms) ? next_failure(w) : next_request(w);
    struct mk_recorder_record *r = record_at(w, at);
    uint64_t version = begin_change(w, r);
    put_request(w, r, request);
    put_result(r, record, record->outcome, record->duration_ms * 1000);
    put_result_texts(r, record, put_target(w, r, request));
    end_change(r, version);
}

static inline char *end_of_target(struct mk_recorder_record *r)
{
    return r->text + r->len[MK_RECORDER_HOST] + r->len[MK_RECORDER_PATH];
}

MK_NOINLINE static void end_rare_open_record(struct mk_recorder_writer *w,
                                             const struct mk_access_record *record, uint32_t at)
{
    const struct mk_request *request = record->request;
    uint64_t duration_us =
        record->began_us ? mk_access_record_duration_us(record) : handled_ms(request) * 1000;
    if (request->extras)
        duration_us = attempts_us(request, duration_us);
    if (is_failure(w, record, duration_us / 1000) && at < w->n_requests)
        at = move_to_failures(w, at);
    struct mk_recorder_record *r = record_at(w, at);
    uint64_t version = begin_change(w, r);
    r->client = *request->peer; /* a hook may have determined another one */
    put_result(r, record, record->outcome, duration_us);
    put_result_texts(r, record, end_of_target(r));
    end_change(r, version);
    w->holders[at] = NULL;
}

MK_NOINLINE static void end_open_record(struct mk_recorder_writer *w, const struct mk_access_record *record,
                                        uint32_t at)
{
    const struct mk_request *request = record->request;
    uint64_t duration_ms = handled_ms(request);
    if (MK_UNLIKELY(record->began_us || !has_only_route(record) || is_failure(w, record, duration_ms))) {
        end_rare_open_record(w, record, at);
        return;
    }
    struct mk_recorder_record *r = record_at(w, at);
    uint64_t version = begin_change(w, r);
    r->client = *request->peer;
    put_result(r, record, MK_OUTCOME_OK, duration_ms * 1000);
    (void)put_short_text(r, MK_RECORDER_ROUTE, end_of_target(r), request->route->pattern.text);
    end_change(r, version);
    w->holders[at] = NULL;
}

/* Most requests are successful, and have short texts. */
static inline bool is_common(const struct mk_recorder_writer *w, const struct mk_access_record *record)
{
    return has_only_route(record) && has_short_target(w, record->request) &&
           !is_failure(w, record, record->duration_ms) && is_prepared(w, record->request->now_ms);
}

void mk_recorder_writer_end(const struct mk_access_record *record, void *writer)
{
    struct mk_recorder_writer *w = writer;
    const struct mk_request *request = record->request;
    uint32_t open = mk_exchange_of(request)->record;
    if (open) {
        end_open_record(w, record, open - 1);
        return;
    }
    if (MK_UNLIKELY(!is_common(w, record))) {
        end_rare_record(w, record);
        return;
    }
    struct mk_recorder_record *r = record_at(w, next_request(w));
    uint64_t version = begin_change(w, r);
    put_request(w, r, request);
    put_result(r, record, MK_OUTCOME_OK, record->duration_ms * 1000);
    (void)put_short_text(r, MK_RECORDER_ROUTE, put_short_target(r, request), request->route->pattern.text);
    end_change(r, version);
}

/* ---- Claiming ---- */

/* Continues after the latest version. After a power failure, the indexes in the slot may be older than the records: then
 * the newest records are overwritten first. */
static void adopt_records(struct mk_recorder_writer *w)
{
    struct mk_recorder_slot *slot = w->slot;
    if (slot->next_request >= w->n_requests)
        slot->next_request = 0;
    if (slot->next_failure < w->n_requests || slot->next_failure >= w->n_all)
        slot->next_failure = w->n_requests;
    for (uint32_t i = 0; i < w->n_all; i++) {
        uint64_t version = __atomic_load_n(&record_at(w, i)->version, __ATOMIC_RELAXED);
        version += version & 1;
        w->version = version > w->version ? version : w->version;
    }
}

static bool is_being_changed(const struct mk_recorder_record *r)
{
    uint64_t version = __atomic_load_n(&r->version, __ATOMIC_RELAXED);
    return version & 1 || r->check != version;
}

static void mark_lost_records(struct mk_recorder_writer *w)
{
    for (uint32_t i = 0; i < w->n_all; i++) {
        struct mk_recorder_record *r = record_at(w, i);
        if (r->state != MK_RECORDER_OPEN)
            continue;
        bool is_torn = is_being_changed(r); /* the process died while it wrote the record */
        uint32_t at = i < w->n_requests && !is_torn ? move_to_failures(w, i) : i;
        uint64_t version = begin_change(w, record_at(w, at));
        record_at(w, at)->state = is_torn ? MK_RECORDER_EMPTY : MK_RECORDER_LOST;
        end_change(record_at(w, at), version);
    }
}

struct mk_recorder_writer *mk_recorder_writer_new(const struct mk_recorder_store *s,
                                                  struct mk_recorder_slot *slot,
                                                  const struct mk_recorder_limits *limits)
{
    struct mk_recorder_writer *w = mk_mem_zalloc(1, sizeof *w);
    uint32_t n_all = s->header.n_requests + s->header.n_failures;
    if (w)
        w->holders = mk_mem_zalloc(n_all, sizeof *w->holders);
    if (!w || !w->holders) {
        __atomic_store_n(&slot->owner, 0, __ATOMIC_SEQ_CST);
        mk_mem_free(w);
        return NULL;
    }
    w->slot = slot;
    w->n_requests = s->header.n_requests;
    w->n_all = n_all;
    w->pid = (uint32_t)getpid();
    w->slow_ms = limits->slow_ms;
    w->with_query = limits->with_query;
    adopt_records(w);
    mark_lost_records(w);
    return w;
}

void mk_recorder_writer_free(struct mk_recorder_writer *w)
{
    if (!w)
        return;
    __atomic_store_n(&w->slot->owner, 0, __ATOMIC_SEQ_CST);
    mk_mem_free(w->holders);
    mk_mem_free(w);
}
