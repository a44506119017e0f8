/* SPDX-License-Identifier: Apache-2.0 */
#include "service/memory_limit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* The limit of RLIMIT_DATA in bytes; 0: none. */
static uint64_t memory_limit(void)
{
    struct rlimit limit;
    bool has_one = getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return has_one ? (uint64_t)limit.rlim_cur : 0;
}

void duda_memory_limit_format(char *buf, size_t cap)
{
    uint64_t limit = memory_limit();
    buf[0] = '\0';
    if (limit)
        snprintf(buf, cap, "the process is limited to %llu MB of data", (unsigned long long)limit >> 20);
}

/* ---- Replacement of a full worker ---- */

enum { CHECK_MS = 100, REPEAT_MS = 5000, SPARE_PART = 16 };

/* Returns whether less than a sixteenth of the limit can be allocated, even now that the handlers that ran
 * out of memory have ended. */
static bool is_memory_full(void)
{
    size_t size = (size_t)(memory_limit() / SPARE_PART);
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED)
        munmap(p, size);
    return p == MAP_FAILED;
}

/* Memory that a service leaks is freed only when its process ends. The master limits how often it replaces a
 * worker, and ignores requests that come too early: the timer repeats the request while the memory is full. */
static void request_replacement(struct mk_timer *t)
{
    struct duda_worker_ctx *w = MK_CONTAINER(t, struct duda_worker_ctx, memory_timer);
    char limit[64];
    if (!is_memory_full())
        return;
    if (mk_worker_request_replacement(w->worker) == -ENOTCONN)
        return;
    mk_timer_set(t, w->worker, REPEAT_MS);
    if (w->has_requested_replacement)
        return;
    w->has_requested_replacement = true;
    duda_memory_limit_format(limit, sizeof limit);
    mk_worker_log(w->worker, MK_LOG_ERROR, "the memory is full, %s: this worker requests its replacement",
                  limit);
}

void duda_memory_check_later(struct duda_worker_ctx *worker_ctx)
{
    if (!memory_limit() || mk_timer_is_set(&worker_ctx->memory_timer))
        return;
    mk_timer_init(&worker_ctx->memory_timer, request_replacement);
    mk_timer_set(&worker_ctx->memory_timer, worker_ctx->worker, CHECK_MS);
}
