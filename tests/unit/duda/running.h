/* SPDX-License-Identifier: Apache-2.0 */
/* Fakes of the server and of the Duda files that handlers call, for the test of duda/service/scheduler.c;
 * `fake` records the calls. */
#ifndef MK_UNIT_DUDA_RUNNING_H
#define MK_UNIT_DUDA_RUNNING_H

#include <errno.h>
#include <monkey/route_stats.h>

#include "service/error_handlers.h"
#include "service/memory.h"
#include "service/memory_limit.h"
#include "service/reserved_cookies.h"
#include "service/result.h"
#include "service/span.h"
#include "service/sse_streams.h"
#include "service/stall_detector.h"
#include "service/suspend.h"
#include "service/terminated.h"
#include "service/worker_ctx.h"
#include "unit/test.h"

/* ---- Fake server ---- */

static struct duda_worker_ctx worker_ctx;
static uint64_t counts[MK_ROUTE_DURATION + MK_STAT_BUCKETS + 1];
static char request; /* the test uses only its address */
static struct {
    unsigned status, resumed, followed, turns, settled, kept, freed, terminated, cleanups, entered, left;
    bool fails, begun;
    const struct mk_body_source_ops *ops;
    void *ctx;
    mk_str content;
    void (*on_iteration_end)(void *ctx);
} fake;

uint64_t *mk_worker_cells(const struct mk_worker *w, uint32_t series)
{
    (void)w;
    return series == 1 ? counts : NULL;
}

static struct mk_request *a_request(void)
{
    return (struct mk_request *)(void *)&request;
}

unsigned mk_response_status(const struct mk_response *r)
{
    (void)r;
    return fake.status;
}

int mk_response_set_status(struct mk_response *r, unsigned status)
{
    (void)r;
    fake.status = status;
    return 0;
}

int duda_error_handlers_run(struct duda_ctx *d)
{
    return d->result;
}

mk_str mk_response_header(const struct mk_response *r, mk_str name)
{
    (void)r, (void)name;
    return MK_STR_NULL;
}

bool mk_response_has_status(const struct mk_response *r)
{
    return mk_response_status(r) != 0;
}

int64_t mk_response_length(const struct mk_response *r)
{
    (void)r;
    return (int64_t)fake.content.len;
}

bool mk_response_is_file(const struct mk_response *r)
{
    (void)r;
    return false;
}

int mk_response_set_header(struct mk_response *r, mk_str name, mk_str value)
{
    (void)r, (void)name, (void)value;
    return 0;
}

int mk_response_add_header(struct mk_response *r, mk_str name, mk_str value)
{
    return mk_response_set_header(r, name, value);
}

int mk_response_add_header_nocopy(struct mk_response *r, mk_str name, mk_str value)
{
    return mk_response_set_header(r, name, value);
}

int mk_response_add_default(struct mk_response *r, mk_str name, mk_str value)
{
    return mk_response_set_header(r, name, value);
}

int mk_response_set_body_nocopy(struct mk_response *r, mk_str text)
{
    (void)r;
    fake.content = text;
    return fake.fails ? -ENOMEM : 0;
}

int mk_response_make_conditional(struct mk_request *q, struct mk_response *r, unsigned flags)
{
    (void)q, (void)r, (void)flags;
    return 0;
}

int mk_response_set_body_source(struct mk_response *r, const struct mk_body_source_ops *ops, void *ctx,
                                int64_t length)
{
    (void)r;
    assert_true(length == MK_LENGTH_UNKNOWN);
    fake.ops = ops;
    fake.ctx = ctx;
    return fake.fails ? -ENOMEM : 0;
}

void mk_request_resume(struct mk_request *r)
{
    (void)r;
    fake.resumed++;
}

void mk_request_cancel_on_disconnect(struct mk_request *r)
{
    (void)r;
    fake.followed++;
}

void *mk_request_data(const struct mk_request *r)
{
    (void)r;
    return NULL;
}

void mk_request_set_data(struct mk_request *r, void *data)
{
    (void)r;
    assert_null(data);
}

int64_t mk_request_time(const struct mk_request *r)
{
    (void)r;
    return 1;
}

int mk_request_set_handler_timeout(struct mk_request *r, uint32_t ms)
{
    (void)r, (void)ms;
    return 0;
}

void mk_request_log(struct mk_request *r, enum mk_log_level level, const char *fmt, ...)
{
    (void)r, (void)level, (void)fmt;
}

void mk_worker_log(struct mk_worker *w, enum mk_log_level level, const char *fmt, ...)
{
    (void)w, (void)level, (void)fmt;
}

void mk_worker_log_fields(struct mk_worker *w, enum mk_log_level level, mk_str message,
                          const struct mk_log_fields *fields)
{
    (void)w, (void)level, (void)message, (void)fields;
}

void mk_request_log_fields(struct mk_request *r, enum mk_log_level level, mk_str message,
                           const struct mk_log_fields *fields)
{
    (void)r, (void)level, (void)message, (void)fields;
}

void mk_timer_set(struct mk_timer *t, struct mk_worker *w, uint32_t ms)
{
    (void)t, (void)w, (void)ms;
}

void mk_timer_stop(struct mk_timer *t)
{
    (void)t;
}

struct mk_deferred *mk_deferred_new(struct mk_worker *w, void (*on_end)(void *ctx), void *ctx)
{
    (void)w;
    assert_ptr_equal(ctx, &worker_ctx);
    fake.on_iteration_end = on_end;
    return fake.fails ? NULL : (struct mk_deferred *)(void *)&request;
}

void mk_deferred_post(struct mk_deferred *t)
{
    assert_ptr_equal(t, worker_ctx.deferred);
    fake.turns++;
}

void mk_deferred_free(struct mk_deferred *t)
{
    (void)t;
}

/* ---- Fakes of other Duda files ---- */

mk_str duda_request_id(struct duda_ctx *d)
{
    (void)d;
    return MK_STR("1");
}

void duda_memory_check_later(struct duda_worker_ctx *w)
{
    (void)w;
}

void duda_memory_limit_format(char *buffer, size_t cap)
{
    (void)cap;
    *buffer = 0;
}

void duda_stall_detector_enter(struct duda_stall_detector *h)
{
    (void)h;
    fake.entered++;
}

bool duda_stall_detector_leave(struct duda_stall_detector *h)
{
    (void)h;
    fake.left++;
    return false;
}

void duda_worker_ctx_log_crash(struct duda_worker_ctx *h)
{
    (void)h;
}

void duda_memory_run_cleanups(struct duda_ctx *d)
{
    assert_int_equal(d->waits_for, DUDA_SUSPEND_NONE); /* cleanups may suspend the handler */
    fake.cleanups++;
}

void duda_memory_free_chunks(struct duda_ctx *d)
{
    (void)d;
    fake.freed++;
}

void duda_memory_release_block(struct duda_worker_ctx *h, void *memory)
{
    (void)h, (void)memory;
}

void duda_sse_streams_remove(struct duda_ctx *d)
{
    (void)d;
}

void duda_terminate(struct duda_ctx *d)
{
    fake.terminated++;
    duda_fiber_free(d->fiber);
    d->fiber = NULL;
    d->terminated = (struct duda_terminated *)(void *)&request;
}

void duda_terminated_keep_stack(struct duda_ctx *d)
{
    duda_terminate(d);
}

void duda_terminated_add(struct duda_ctx *d)
{
    (void)d;
    fake.kept++;
}

void duda_result_validate(struct duda_ctx *d)
{
    (void)d;
    fake.settled++;
}

void duda_result_log_source(struct duda_ctx *d)
{
    (void)d;
}

unsigned duda_result_errno_to_status(int error)
{
    return error == -ENOENT ? 404 : 500;
}

void duda_result_add_www_authenticate(struct duda_ctx *d)
{
    (void)d;
}

int duda_reserved_cookie_check_header(struct duda_ctx *d, mk_str line)
{
    (void)d, (void)line;
    return 0;
}

void duda_span_end_handler(struct duda_ctx *d)
{
    (void)d;
}

#endif
