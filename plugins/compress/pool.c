/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <monkey/mem.h>

enum {
    QUIET_MS = 2000, /* delay between the end of a stream and returning memory to the system */
    MANY = 4,        /* memory is returned when the number of streams has dropped by this much */
};

/* ---- Coders ---- */

/* Unavailable, unless coder_brotli.c or coder_zstd.c is linked in. */
__attribute__((weak)) const struct coder_ops compress_brotli = {.name = "br"};
__attribute__((weak)) const struct coder_ops compress_zstd = {.name = "zstd"};

const struct coder_ops *const compress_coders[CODINGS] = {
    [CODING_ZSTD] = &compress_zstd,
    [CODING_BROTLI] = &compress_brotli,
    [CODING_GZIP] = &compress_gzip,
};

/* ---- Memory ---- */

static void on_quiet_timer(struct mk_timer *t)
{
    struct pool *p = MK_CONTAINER(t, struct pool, quiet);
    if (p->most >= p->n_streams + MANY)
        mk_mem_trim(); /* libraries allocate blocks of all sizes, and glibc would keep megabytes of free
                        * memory, because it raises its thresholds when large blocks are freed */
    p->most = p->n_streams;
}

void compress_pool_init(struct pool *p, struct mk_worker *w)
{
    p->worker = w;
    mk_timer_init(&p->quiet, on_quiet_timer);
}

void compress_pool_free_idle(struct pool *p)
{
    for (size_t i = 0; i < CODINGS; i++) {
        if (p->idle[i])
            compress_coders[i]->close(p->idle[i]);
        p->idle[i] = NULL;
    }
}

void compress_pool_fini(struct pool *p)
{
    compress_pool_free_idle(p);
    mk_timer_stop(&p->quiet);
    compress_cache_free(p->cache);
}

/* ---- Streams ---- */

bool compress_pool_has_stream_slot(const struct pool *p)
{
    return p->n_streams < p->settings->max_streams;
}

void compress_pool_add_stream(struct pool *p)
{
    p->n_streams++;
    if (p->most < p->n_streams)
        p->most = p->n_streams;
}

void compress_pool_remove_stream(struct pool *p)
{
    p->n_streams--;
    if (p->most < p->n_streams + MANY)
        return;
    mk_timer_set(&p->quiet, p->worker, QUIET_MS);
}

/* ---- Coders ---- */

static void *pop_idle_coder(struct pool *p, enum coding coding)
{
    void *coder = p->idle[coding];
    p->idle[coding] = NULL;
    return coder;
}

void *compress_pool_acquire_coder(struct pool *p, enum coding coding, int64_t length)
{
    const struct coder_ops *ops = compress_coders[coding];
    void *coder = pop_idle_coder(p, coding);
    if (!coder)
        coder = ops->open(p->settings->levels[coding]);
    if (!coder || ops->begin(coder, length))
        return coder;
    ops->close(coder);
    return NULL;
}

void compress_pool_release_coder(struct pool *p, enum coding coding, void *coder)
{
    const struct coder_ops *ops = compress_coders[coding];
    if (coder && ops->is_reusable && !p->idle[coding])
        p->idle[coding] = coder;
    else if (coder)
        ops->close(coder);
}
