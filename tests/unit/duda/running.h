/* SPDX-License-Identifier: Apache-2.0 */
/* The server and the files of Duda that handlers need, for a test of duda/service/run.c: `fake` has what they were asked for. */
#ifndef UNIT_DUDA_RUNNING_H
#define UNIT_DUDA_RUNNING_H

#include <errno.h>
#include <monkey/routes.h>

#include "service/cookie_names.h"
#include "service/hold.h"
#include "service/home.h"
#include "service/memory.h"
#include "service/result.h"
#include "service/streams.h"
#include "service/task.h"
#include "service/terminated.h"
#include "trace/limit.h"
#include "unit/test.h"

/* ---- The server ---- */

static struct duda_home home;
static uint64_t counts[MK_ROUTE_DURATION + MK_STAT_BUCKETS + 1];
static char request; /* its address alone is used */
static struct {
    unsigned status, resumed, followed, turns, settled, kept, freed, terminated, duties, entered, left;
    bool fails, begun;
    const struct mk_source_ops *ops;
    void *ctx;
    mk_str content;
    void (*on_turn_end)(void *ctx);
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

int mk_response_set(struct mk_response *r, mk_str name, mk_str value)
{
    (void)r, (void)name, (void)value;
    return 0;
}

int mk_response_add(struct mk_response *r, mk_str name, mk_str value)
{
    return mk_response_set(r, name, value);
}

int mk_response_add_static(struct mk_response *r, mk_str name, mk_str value)
{
    return mk_response_set(r, name, value);
}

int mk_response_set_static(struct mk_response *r, mk_str text)
{
    (void)r;
    fake.content = text;
    return fake.fails ? -ENOMEM : 0;
}

int mk_response_set_source(struct mk_response *r, const struct mk_source_ops *ops, void *ctx, int64_t length)
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

void mk_request_follow_client(struct mk_request *r)
{
    (void)r;
    fake.followed++;
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

int mk_request_limit_wait(struct mk_request *r, uint32_t ms)
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

void mk_timer_set(struct mk_timer *t, struct mk_worker *w, uint32_t ms)
{
    (void)t, (void)w, (void)ms;
}

void mk_timer_stop(struct mk_timer *t)
{
    (void)t;
}

struct mk_turn_end *mk_turn_end_new(struct mk_worker *w, void (*on_end)(void *ctx), void *ctx)
{
    (void)w;
    assert_ptr_equal(ctx, &home);
    fake.on_turn_end = on_end;
    return fake.fails ? NULL : (struct mk_turn_end *)(void *)&request;
}

void mk_turn_end_set(struct mk_turn_end *t)
{
    assert_ptr_equal(t, home.turn);
    fake.turns++;
}

void mk_turn_end_free(struct mk_turn_end *t)
{
    (void)t;
}

/* ---- The other files of Duda ---- */

void duda_log(struct duda *d, enum mk_log_level level, const char *fmt, ...)
{
    (void)d, (void)level, (void)fmt;
}

void duda_limit_print(char *room, size_t cap)
{
    (void)cap;
    *room = 0;
}

void duda_hold_enter(struct duda_hold *h)
{
    (void)h;
    fake.entered++;
}

bool duda_hold_leave(struct duda_hold *h)
{
    (void)h;
    fake.left++;
    return false;
}

void duda_home_report(struct duda_home *h)
{
    (void)h;
}

void duda_memory_run_duties(struct duda *d)
{
    assert_true(d->runs); /* they may wait */
    fake.duties++;
}

void duda_memory_free(struct duda *d)
{
    (void)d;
    fake.freed++;
}

void duda_memory_give(struct duda_home *h, void *memory)
{
    (void)h, (void)memory;
}

void duda_streams_leave(struct duda *d)
{
    (void)d;
}

void duda_terminate(struct duda *d)
{
    fake.terminated++;
    duda_fiber_free(d->fiber);
    d->fiber = NULL;
    d->terminated = (struct duda_terminated *)(void *)&request;
}

void duda_terminated_keep_stack(struct duda *d)
{
    duda_terminate(d);
}

void duda_terminated_keep(struct duda *d)
{
    (void)d;
    fake.kept++;
}

void duda_result_settle(struct duda *d)
{
    (void)d;
    fake.settled++;
}

void duda_result_explain(struct duda *d)
{
    (void)d;
}

unsigned duda_result_status(int error)
{
    return error == -ENOENT ? 404 : 500;
}

void duda_result_challenge(struct duda *d)
{
    (void)d;
}

int duda_cookies_allow_line(const struct duda *d, mk_str line)
{
    (void)d, (void)line;
    return 0;
}

#endif
