/* SPDX-License-Identifier: Apache-2.0 */
/* Compresses responses while they are sent. */
#include <errno.h>
#include <monkey/plugin.h>

#include "policy.h"
#include "stream.h"

MK_PLUGIN_DECLARE(compress);

/* Per-configuration data. */
struct compress {
    unsigned n_pools;
};

/* Per-worker data: a pool for each section. */
struct pools {
    size_t n;
    struct pool v[];
};

/* The decision about a response. */
struct job {
    const struct settings *settings;
    struct mk_request *request;
    struct mk_response *response;
    struct response_info facts;
    enum coding coding;
};

/* ---- Headers ---- */

/* Combines all members in one line, because some caches ignore a second Vary line. */
static int add_vary(struct mk_response *response)
{
    char buf[1024];
    struct mk_buf all = mk_buf_fixed(buf, sizeof buf);
    mk_str name, value;
    for (size_t i = 0; mk_response_header_at(response, i, &name, &value); i++) {
        if (!mk_str_eq_nocase(name, MK_STR("Vary")) || value.len == 0)
            continue;
        mk_buf_add(&all, value);
        mk_buf_add(&all, MK_STR(", "));
    }
    if (all.len == 0)
        return mk_response_add_header_nocopy(response, MK_STR("Vary"), MK_STR("Accept-Encoding"));
    mk_buf_add(&all, MK_STR("Accept-Encoding"));
    if (all.failed)
        return mk_response_add_header_nocopy(response, MK_STR("Vary"), MK_STR("Accept-Encoding"));
    return mk_response_set_header(response, MK_STR("Vary"), mk_buf_str(&all));
}

/* Makes the tag weak, which means that the bytes differ but the content is equivalent (RFC 9110, section
 * 8.8.1). */
static int weaken_etag(struct mk_response *response, mk_str etag)
{
    char buf[512];
    struct mk_buf weak = mk_buf_fixed(buf, sizeof buf);
    if (etag.len == 0 || mk_str_starts(etag, MK_STR("W/")))
        return 0;
    mk_buf_add(&weak, MK_STR("W/"));
    mk_buf_add(&weak, etag);
    if (weak.failed)
        return mk_response_remove_header(response, MK_STR("ETag"));
    return mk_response_set_header(response, MK_STR("ETag"), mk_buf_str(&weak));
}

/* Sets the headers of the compressed response. Returns 0 or -ENOMEM. */
static int set_coding_headers(const struct job *j)
{
    int e = weaken_etag(j->response, j->facts.etag);
    if (!e)
        e = mk_response_remove_header(j->response, MK_STR("Accept-Ranges"));
    if (!e)
        e = mk_response_add_header_nocopy(j->response, MK_STR("Content-Encoding"),
                                          mk_str_from_c(compress_coders[j->coding]->name));
    return e;
}

static void remove_coding_header(const struct job *j)
{
    (void)mk_response_remove_header(j->response, MK_STR("Content-Encoding"));
}

/* If the client has the compressed representation, makes the tag of the 304 weak, as it was in the 200. */
static void weaken_etag_of_304(const struct job *j)
{
    mk_str known = mk_request_header(j->request, MK_STR("If-None-Match")), one;
    while (mk_header_list_next(&known, &one))
        if (mk_str_starts(one, MK_STR("W/")) && mk_str_eq(mk_str_skip(one, 2), j->facts.etag)) {
            (void)weaken_etag(j->response, j->facts.etag);
            return;
        }
}

/* ---- Content ---- */

static ssize_t read_empty_body(void *ctx, struct mk_filter_next *next, char *buf, size_t cap)
{
    (void)ctx, (void)next, (void)buf, (void)cap;
    return 0;
}

static const struct mk_filter_ops nothing = {.read = read_empty_body};

static void respond_compressed_stream(const struct job *j, struct stream *s)
{
    if (set_coding_headers(j)) {
        compress_stream_free(s);
        remove_coding_header(j);
        return;
    }
    if (mk_response_add_filter(j->response, &compress_stream_ops, s, MK_LENGTH_UNKNOWN))
        remove_coding_header(j);
    else
        mk_request_explain(j->request, "compress", "%s", compress_coders[j->coding]->name);
}

static void respond_compressed_head(const struct job *j)
{
    if (set_coding_headers(j) || mk_response_add_filter(j->response, &nothing, NULL, MK_LENGTH_UNKNOWN))
        remove_coding_header(j);
}

static void respond_cached(const struct job *j, struct cached *copy)
{
    if (mk_request_add_cleanup(j->request, compress_cached_release, copy)) {
        compress_cached_release(copy);
        return;
    }
    if (set_coding_headers(j) || mk_response_set_body_nocopy(j->response, compress_cached_body(copy)))
        remove_coding_header(j);
    else
        mk_request_explain(j->request, "compress", "%s (cached)", compress_coders[j->coding]->name);
}

static bool may_be_cached(const struct job *j, struct mk_file_id *file)
{
    const struct response_info *f = &j->facts;
    return mk_response_file_id(j->response, file) && f->status == 200 && !f->is_own &&
           file->size <= j->settings->max_cache_file;
}

static struct cache *get_pool_cache(struct pool *p)
{
    if (!p->cache && p->settings->cache_size)
        p->cache = compress_cache_new(p->settings->cache_size);
    return p->cache;
}

static void compress_response(const struct job *j, struct pool *pool)
{
    struct cache_key key = {.coding = j->coding};
    struct cache *cache = may_be_cached(j, &key.file) ? get_pool_cache(pool) : NULL;
    struct cached *copy = cache ? compress_cache_acquire(cache, &key) : NULL;
    int64_t length = mk_response_length(j->response);
    if (copy) {
        respond_cached(j, copy);
        return;
    }
    if (mk_request_method(j->request) == MK_METHOD_HEAD) {
        respond_compressed_head(j);
        return;
    }
    struct stream *s = compress_stream_new(pool, j->request, j->coding, length);
    if (s && cache)
        compress_stream_cache_output(s, compress_cache_begin_entry(cache, &key, (uint64_t)length));
    if (s)
        respond_compressed_stream(j, s);
}

static struct pool *get_worker_pool(const struct job *j)
{
    struct pools *pools = mk_worker_data(mk_request_worker(j->request), &MK_PLUGIN_OF(compress));
    struct pool *p = &pools->v[j->settings->pool - 1];
    p->settings = j->settings;
    return p;
}

static void on_response(struct mk_request *request, struct mk_response *response, void *host_data)
{
    struct job j = {.settings = host_data, .request = request, .response = response};
    compress_policy_read_response(&j.facts, response);
    if (!compress_policy_is_worthwhile(j.settings, request, response, &j.facts))
        return;
    if (!j.facts.varies && add_vary(response))
        return;
    j.facts.etag = mk_response_header(response, MK_STR("ETag")); /* add_vary() may have moved the headers */
    if (j.facts.status == 304)
        weaken_etag_of_304(&j);
    if (j.facts.status == 304 || j.facts.is_part ||
        !compress_policy_is_breach_safe(j.settings, request, response))
        return;
    j.coding = compress_policy_choose_coding(j.settings, request);
    if (j.coding != CODINGS)
        compress_response(&j, get_worker_pool(&j));
}

/* ---- Configuration ---- */

static int load_plugin(struct mk_config *config, void **data)
{
    *data = mk_config_alloc(config, sizeof(struct compress));
    return *data ? 0 : -ENOMEM;
}

static void enable_all_codings(struct codings *c)
{
    for (unsigned i = 0; i < CODINGS; i++)
        if (compress_coders[i]->open)
            c->v[c->n++] = (enum coding)i;
}

static int bind_vhost(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    struct compress *c = data;
    struct settings *s = mk_config_section(config, &compress_table, NULL);
    (void)host;
    if (!s || s->codings.is_off || !s->types.n)
        return 0;
    if (!s->codings.n)
        enable_all_codings(&s->codings);
    if (!s->pool)
        s->pool = ++c->n_pools;
    *host_data = s;
    return 0;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    const struct compress *c = data;
    struct pools *pools = mk_mem_zalloc(1, sizeof *pools + c->n_pools * sizeof pools->v[0]);
    if (!pools)
        return -ENOMEM;
    pools->n = c->n_pools;
    for (size_t i = 0; i < pools->n; i++)
        compress_pool_init(&pools->v[i], worker);
    mk_worker_set_data(worker, &MK_PLUGIN_OF(compress), pools);
    return 0;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    struct pools *pools = mk_worker_data(worker, &MK_PLUGIN_OF(compress));
    (void)data;
    for (size_t i = 0; i < pools->n; i++)
        compress_pool_fini(&pools->v[i]);
    mk_mem_free(pools);
}

static void on_release_memory(struct mk_worker *worker, unsigned what, void *data)
{
    struct pools *pools = mk_worker_data(worker, &MK_PLUGIN_OF(compress));
    (void)data;
    for (size_t i = 0; i < pools->n && what & MK_RELEASE_CACHES; i++)
        compress_pool_free_idle(&pools->v[i]);
}

/* Runs after plugins that set headers, which affect the decision, and before limits, which counts sent
 * bytes. */
MK_PLUGIN(compress) = {
    MK_PLUGIN_HEAD,
    .name = "compress",
    .version = "1.0",
    .help = "Compresses responses with gzip, brotli and zstd.",
    .priority = MK_PRIORITY_LIMIT + 10,
    .sections = (const struct mk_conf_table *const[]){&compress_table, NULL},
    .load = load_plugin,
    .host = bind_vhost,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .on_response = on_response,
    .on_release_memory = on_release_memory,
};
