/* SPDX-License-Identifier: Apache-2.0 */
/* A cache for a slow page: the first request for a number waits until its primes are counted, and Memcached
 * keeps the result for a minute. Without Memcached, the page is slow but still works. */
#define DUDA_USE "duda-memcached"
#include <duda.h>
#include <duda/memcached.h>
#include <errno.h>
#include <monkey/mem.h>

enum { NUMBER_MAX = 10000000, KEPT_MS = 60000 };

struct sieve {
    size_t limit, found;
};

/* Runs in a thread, because long computations would block the worker. */
static int count(void *job)
{
    struct sieve *s = job;
    bool *is_composite = mk_mem_zalloc(s->limit + 1, sizeof *is_composite);
    if (!is_composite)
        return -ENOMEM;
    for (size_t i = 2; i < s->limit; i++) {
        s->found += !is_composite[i];
        for (size_t k = i * i; !is_composite[i] && k < s->limit; k += i)
            is_composite[k] = true;
    }
    mk_mem_free(is_composite);
    return 0;
}

static int make(struct duda_ctx *d, int64_t limit, mk_str *page)
{
    struct sieve s = {.limit = (size_t)limit};
    int e = duda_offload(d, NULL, count, &s, sizeof s);
    *page = e ? MK_STR_NULL : duda_sprintf(d, "%zu primes are below %lld\n", s.found, (long long)limit);
    return e ? e : page->p ? 0 : -ENOMEM;
}

static int show(struct duda_ctx *d)
{
    struct duda_memcached *cache = duda_memcached_find(d, NULL);
    int64_t limit;
    mk_str page;
    if (!duda_param_int(d, "n", &limit) || limit < 0 || limit > NUMBER_MAX)
        return duda_problem(d, 400, "ask for a number up to %d", NUMBER_MAX);
    mk_str key = duda_sprintf(d, "primes/%lld", (long long)limit);
    bool hit = duda_memcached_get(d, cache, key, &page) == 0;
    int e = hit ? 0 : make(d, limit, &page);
    if (!e && !hit && duda_memcached_set(d, cache, key, page, KEPT_MS))
        duda_log(d, MK_LOG_WARN, "not cached: %.*s", MK_STR_ARG(duda_memcached_error(d, cache, key)));
    e = e ? e : duda_header_set(d, "X-Cache", hit ? MK_STR("hit") : MK_STR("miss"));
    return e ? e : duda_write(d, page);
}

DUDA_SERVICE(primes, DUDA_GET("/:n<int>", show, "Counts the primes below n."));
