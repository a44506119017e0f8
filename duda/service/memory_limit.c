/* SPDX-License-Identifier: Apache-2.0 */
#include "service/memory_limit.h"

#include <monkey/clock.h>
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

enum { CHECK_MS = 100, AGE_MIN_MS = 5000, SPARE_PART = 16 };

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

/* Memory that a service leaks is freed only when its process ends. A reload starts new workers, and the old
 * ones finish their requests. A worker requests no reload before it has run for AGE_MIN_MS: otherwise, a
 * service that needs more memory than its limit would cause one reload after another. */
static void replace_full_worker(struct mk_timer *t)
{
    struct duda_worker_ctx *w = MK_CONTAINER(t, struct duda_worker_ctx, memory_timer);
    char limit[64];
    uint64_t age_ms = (mk_clock_us() - w->started_us) / 1000;
    if (w->has_requested_replacement || !is_memory_full())
        return;
    if (age_ms < AGE_MIN_MS) {
        mk_timer_set(t, w->worker, (uint32_t)(AGE_MIN_MS - age_ms));
        return;
    }
    duda_memory_limit_format(limit, sizeof limit);
    w->has_requested_replacement = mk_worker_request_reload(w->worker) == 0;
    if (w->has_requested_replacement)
        mk_worker_log(w->worker, MK_LOG_ERROR, "the memory is full, %s: new workers replace this one", limit);
}

void duda_memory_check_later(struct duda_worker_ctx *worker_ctx)
{
    if (worker_ctx->has_requested_replacement || !memory_limit())
        return;
    mk_timer_init(&worker_ctx->memory_timer, replace_full_worker);
    mk_timer_set(&worker_ctx->memory_timer, worker_ctx->worker, CHECK_MS);
}
