/* SPDX-License-Identifier: Apache-2.0 */
/* Discovery in the first worker: when sources are looked up, and what happens with the result. */
#include "upstream/discovery.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "os/fd.h"
#include "upstream/discovery_lookup.h"
#include "upstream/server_control.h"

enum {
    THREADS = 2,
    TTL_MIN_S = 1,
    TTL_MAX_S = 3600,
    RETRY_MS = 5000, /* after a failure */
    BACKOFF_DOUBLINGS =
        3,           /* of RETRY_MS, while the name servers do not answer: such a lookup occupies a thread */
    APPLY_MS = 500,  /* after a result that could not be applied completely */
    POLL_MS = 10000, /* of files, on file systems without notification */
    SETTLE_MS = 50   /* after a change of a file */
};

#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define LOAD(p)     __atomic_load_n(p, __ATOMIC_RELAXED)

/* A source in the worker that looks it up. */
struct watched_source {
    struct mk_discovery *discovery;
    const struct mk_discovery_source *source;
    struct mk_timer timer;
    struct mk_discovery_lookup *lookup; /* in progress; NULL: none */
    struct mk_discovery_lookup *result; /* the last successful lookup; NULL: none */
    uint32_t next_ms;                   /* time from the application of the result to the next lookup */
    unsigned n_timeouts;                /* consecutive lookups that no name server answered */
    unsigned n_without_room;            /* as logged last */
    bool is_incomplete;                 /* the result could not be applied completely */
    bool is_changed;                    /* the file has changed since the last lookup began */
};

struct mk_discovery {
    struct mk_pool *pool;
    struct mk_thread_pool *threads, *file_threads; /* files do not wait for name servers */
    int inotify_fd;
    int cancel_fd; /* an eventfd: readable when the worker stops */
    struct mk_watcher *watcher;
    bool is_draining;
    unsigned n;
    struct watched_source of[];
};

/* ---- Statistics ---- */

static const struct mk_stat_metric metrics[] = {
    [MK_DISCOVERY_STATE] = {.name = "monkey_discovery_state",
                            .help =
                                "0: looked up for the first time; 1: the last lookup was successful; 2: it "
                                "failed, and the known servers stay in use; 3: a part of it failed.",
                            .column = "state",
                            .kind = MK_STAT_GAUGE,
                            .value_names = "pending ok failed partial"},
    [MK_DISCOVERY_SERVERS] = {.name = "monkey_discovery_servers",
                              .help = "Servers that the source listed last.",
                              .column = "servers",
                              .kind = MK_STAT_GAUGE},
    [MK_DISCOVERY_LOOKUPS] = {.name = "monkey_discovery_lookups_total",
                              .help = "Lookups of the source, or changes of its file.",
                              .column = "lookups",
                              .kind = MK_STAT_COUNTER},
    [MK_DISCOVERY_FAILURES] = {.name = "monkey_discovery_failures_total",
                               .help = "Lookups that failed, or found no server.",
                               .column = "failures",
                               .kind = MK_STAT_COUNTER},
};

static const struct mk_stat_table table = {
    .name = "discovery", .labels = {"source", "upstream"}, .metrics = metrics, .n_metrics = MK_LEN(metrics)};

static void publish_source(struct mk_stat_registry *registry, unsigned in, struct mk_discovery_source *s)
{
    const mk_str names[] = {s->name, s->upstream->name};
    uint32_t series = mk_stat_series(registry, in, names);
    s->cells = mk_stat_cells(registry, series, MK_STAT_SERVER);
    mk_stat_hide(registry, series, false);
    if (s->cells && !mk_server_control_has_discovered(s))
        STORE(&s->cells[MK_DISCOVERY_STATE], MK_DISCOVERY_PENDING);
}

static bool is_configured(const struct mk_upstreams *all, mk_str name, mk_str upstream)
{
    for (const struct mk_upstream *u = all->first; u; u = u->next)
        for (const struct mk_discovery_source *s = u->sources; s; s = s->next)
            if (mk_str_eq(s->name, name) && mk_str_eq(u->name, upstream))
                return true;
    return false;
}

void mk_discovery_publish(struct mk_upstreams *all, struct mk_config *config)
{
    struct mk_stat_registry *registry = mk_config_statistics(config);
    bool has_sources = false;
    for (const struct mk_upstream *u = all->first; u; u = u->next)
        has_sources |= u->sources != NULL;
    if (!registry || (!has_sources && !mk_stat_find(registry, table.name)))
        return;
    unsigned in = mk_stat_register_table(registry, &table);
    for (struct mk_upstream *u = all->first; u; u = u->next)
        for (struct mk_discovery_source *s = u->sources; s; s = s->next)
            publish_source(registry, in, s);
    for (uint32_t i = 0; (i = mk_stat_next(registry, in, i));)
        if (!is_configured(all, mk_stat_label(registry, i, 0), mk_stat_label(registry, i, 1)))
            mk_stat_hide(registry, i, true);
}

/* Returns the state before. */
static enum mk_discovery_state set_state(const struct mk_discovery_source *s, enum mk_discovery_state state)
{
    return s->cells ? (enum mk_discovery_state)__atomic_exchange_n(&s->cells[MK_DISCOVERY_STATE], state,
                                                                   __ATOMIC_RELAXED)
                    : MK_DISCOVERY_PENDING;
}

/* ---- Results ---- */

#define LOG_SOURCE(w, level, fmt, ...)                                                                       \
    mk_worker_log((w)->discovery->pool->worker, level, "upstream %.*s: %s%.*s%s" fmt,                        \
                  MK_STR_ARG((w)->source->upstream->name), (w)->source->kind == MK_DISCOVER_FILE ? "" : "`", \
                  MK_STR_ARG((w)->source->name), (w)->source->kind == MK_DISCOVER_FILE ? "" : "`",           \
                  __VA_ARGS__)

/* Only the workers of the latest configuration may change the slots. */
static bool is_latest_configuration(const struct mk_discovery *d)
{
    const struct mk_upstreams *all = d->pool->upstreams;
    return !d->is_draining && all->former.serial == LOAD(&all->stats.memory->n_published);
}

static void report_room(struct watched_source *w, unsigned n_without_room)
{
    if (n_without_room == w->n_without_room)
        return;
    w->n_without_room = n_without_room;
    if (n_without_room)
        LOG_SOURCE(w, MK_LOG_WARN, " lists %u server%s more than the upstream has room for: see MaxServers",
                   n_without_room, n_without_room == 1 ? "" : "s");
}

/* Applies the result. Sets the timer for the rest of it, or for the next lookup. */
static void apply_result(struct watched_source *w)
{
    struct mk_pool *p = w->discovery->pool;
    const struct mk_discovered *found = &w->result->found;
    unsigned n_without_room = 0;
    w->is_incomplete = mk_server_control_apply(p, w->source, found, &n_without_room) == -EAGAIN;
    if (!w->is_incomplete)
        report_room(w, n_without_room + found->n_listed - found->n);
    mk_timer_set(&w->timer, p->worker, w->is_incomplete ? APPLY_MS : w->next_ms);
}

static void take_failure(struct watched_source *w, const struct mk_discovery_lookup *l)
{
    const struct mk_discovery_source *s = w->source;
    uint32_t retry_ms = w->next_ms < RETRY_MS ? w->next_ms : RETRY_MS;
    if (s->cells)
        mk_stat_add(&s->cells[MK_DISCOVERY_FAILURES], 1);
    enum mk_discovery_state before = set_state(s, MK_DISCOVERY_FAILED);
    if (before != MK_DISCOVERY_FAILED)
        LOG_SOURCE(
            w, MK_LOG_WARN, "%s: %s; %s", s->kind == MK_DISCOVER_FILE ? "" : " does not resolve", l->message,
            mk_server_control_has_discovered(s) ? "the servers stay as they are" : "no server is known");
    if (before == MK_DISCOVERY_PENDING)
        mk_server_control_notify(w->discovery->pool, s->upstream); /* requests wait for the first result */
    w->n_timeouts = l->error != -ETIMEDOUT              ? 0
                    : w->n_timeouts < BACKOFF_DOUBLINGS ? w->n_timeouts + 1
                                                        : w->n_timeouts;
    mk_timer_set(&w->timer, w->discovery->pool->worker, retry_ms << w->n_timeouts);
}

static void report_success(struct watched_source *w, enum mk_discovery_state before)
{
    const struct mk_discovery_lookup *l = w->result;
    if (l->found.is_partial && before != MK_DISCOVERY_PARTIAL)
        LOG_SOURCE(w, MK_LOG_WARN, " resolves only in part: %s; the servers of that part stay as they are",
                   l->message);
    else if (!l->found.is_partial && (before == MK_DISCOVERY_FAILED || before == MK_DISCOVERY_PARTIAL))
        LOG_SOURCE(w, MK_LOG_INFO, " lists %u server%s again", l->found.n_listed,
                   l->found.n_listed == 1 ? "" : "s");
}

/* Takes over the lookup. */
static void take_found(struct watched_source *w, struct mk_discovery_lookup *l)
{
    const struct mk_discovery_source *s = w->source;
    uint32_t ttl = l->ttl > TTL_MAX_S ? TTL_MAX_S : l->ttl < TTL_MIN_S ? TTL_MIN_S : l->ttl;
    uint32_t resolve_ms = s->upstream->settings->resolve_ms;
    mk_mem_free(w->result);
    w->result = l;
    w->n_timeouts = 0;
    if (s->kind != MK_DISCOVER_FILE)
        w->next_ms = resolve_ms ? resolve_ms : ttl * 1000;
    if (l->found.is_partial && w->next_ms > RETRY_MS)
        w->next_ms = RETRY_MS;
    if (s->cells)
        mk_stat_set(&s->cells[MK_DISCOVERY_SERVERS], l->found.n_listed);
    apply_result(w);
    enum mk_discovery_state before =
        set_state(s, l->found.is_partial ? MK_DISCOVERY_PARTIAL : MK_DISCOVERY_OK);
    report_success(w, before);
    if (before == MK_DISCOVERY_PENDING)
        mk_server_control_notify(w->discovery->pool, s->upstream);
}

/* Returns true if it has taken over the lookup. */
static bool take_lookup(struct watched_source *w, struct mk_discovery_lookup *l)
{
    if (!is_latest_configuration(w->discovery)) {
        mk_timer_set(&w->timer, w->discovery->pool->worker, RETRY_MS);
        return false;
    }
    if (l->error == -EALREADY) {
        apply_result(w); /* another source may have dropped a server that this one also lists */
        report_success(w, set_state(w->source, MK_DISCOVERY_OK));
        return false;
    }
    if (w->source->cells)
        mk_stat_add(&w->source->cells[MK_DISCOVERY_LOOKUPS], 1);
    if (!l->error)
        take_found(w, l);
    else
        take_failure(w, l);
    return !l->error;
}

static void on_lookup_done(void *ctx)
{
    struct mk_discovery_lookup *l = ctx;
    struct watched_source *w = l->owner;
    if (w)
        w->lookup = NULL;
    if (!w || !take_lookup(w, l))
        mk_mem_free(l);
    if (w && w->is_changed)
        mk_timer_set(&w->timer, w->discovery->pool->worker, SETTLE_MS);
}

/* ---- Lookups ---- */

static void run_lookup(void *ctx)
{
    mk_discovery_lookup_run(ctx);
}

static void look_up(struct watched_source *w)
{
    struct mk_discovery *d = w->discovery;
    struct mk_discovery_lookup *l = mk_mem_zalloc(1, sizeof *l);
    if (l) {
        l->owner = w;
        l->source = w->source;
        l->cancel_fd = d->cancel_fd;
        if (w->result)
            l->version = w->result->version;
    }
    struct mk_thread_pool *threads = w->source->kind == MK_DISCOVER_FILE ? d->file_threads : d->threads;
    if (!l || mk_thread_pool_submit(threads, run_lookup, on_lookup_done, l)) {
        mk_mem_free(l);
        mk_timer_set(&w->timer, d->pool->worker, APPLY_MS);
        return;
    }
    w->lookup = l;
    w->is_changed = false;
}

static void on_due(struct mk_timer *t)
{
    struct watched_source *w = MK_CONTAINER(t, struct watched_source, timer);
    if (w->discovery->is_draining)
        return;
    if (!w->lookup && w->is_incomplete && !w->is_changed && is_latest_configuration(w->discovery))
        apply_result(w);
    else if (!w->lookup)
        look_up(w);
}

/* ---- Files ---- */

/* Some file in a watched folder has changed: the lookup finds out which. */
static void on_inotify_event(void *ctx, unsigned which)
{
    struct mk_discovery *d = ctx;
    char ignored[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    (void)which;
    while (read(d->inotify_fd, ignored, sizeof ignored) > 0)
        ;
    for (unsigned i = 0; i < d->n && !d->is_draining; i++)
        if (d->of[i].source->kind == MK_DISCOVER_FILE) {
            d->of[i].is_changed = true;
            mk_timer_set(&d->of[i].timer, d->pool->worker, SETTLE_MS);
        }
}

/* Without notification, the file is checked every POLL_MS. */
static void watch_folder(struct mk_discovery *d, mk_str path)
{
    char folder[4096];
    size_t len = mk_str_find_last(path, '/') + 1;
    if (len >= sizeof folder)
        return;
    memcpy(folder, path.p, len);
    folder[len] = '\0';
    if (d->inotify_fd < 0)
        d->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (d->inotify_fd >= 0)
        (void)inotify_add_watch(d->inotify_fd, folder, IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE);
}

/* ---- The life of a worker ---- */

static void watch_source(struct mk_discovery *d, const struct mk_discovery_source *s)
{
    struct watched_source *w = &d->of[d->n++];
    w->discovery = d;
    w->source = s;
    w->next_ms = s->kind == MK_DISCOVER_FILE ? POLL_MS : RETRY_MS;
    mk_timer_init(&w->timer, on_due);
    if (s->kind == MK_DISCOVER_FILE)
        watch_folder(d, s->path);
    look_up(w);
}

static bool open_discovery(struct mk_discovery *d, unsigned n)
{
    d->threads = mk_thread_pool_new(d->pool->worker, THREADS, n);
    d->file_threads = mk_thread_pool_new(d->pool->worker, 1, n);
    if (d->cancel_fd < 0 || !d->threads || !d->file_threads)
        return false;
    for (const struct mk_upstream *u = d->pool->upstreams->first; u; u = u->next)
        for (const struct mk_discovery_source *s = u->sources; s; s = s->next)
            watch_source(d, s);
    if (d->inotify_fd < 0)
        return true;
    d->watcher = mk_watcher_new(d->pool->worker, d->inotify_fd, MK_READABLE, on_inotify_event, d);
    return d->watcher;
}

bool mk_discovery_start(struct mk_pool *p, struct mk_discovery **out)
{
    unsigned n = 0;
    for (const struct mk_upstream *u = p->upstreams->first; u; u = u->next)
        for (const struct mk_discovery_source *s = u->sources; s; s = s->next)
            n++;
    *out = NULL;
    if (!n || mk_worker_index(p->worker) != 0)
        return true;
    struct mk_discovery *d = mk_mem_zalloc(1, sizeof *d + n * sizeof *d->of);
    if (!d)
        return false;
    d->pool = p;
    d->inotify_fd = -1;
    d->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    *out = d;
    return open_discovery(d, n);
}

void mk_discovery_drain(struct mk_discovery *d)
{
    if (d)
        d->is_draining = true;
}

void mk_discovery_stop(struct mk_discovery *d)
{
    if (!d)
        return;
    if (d->cancel_fd >= 0)
        (void)eventfd_write(d->cancel_fd, 1);
    for (unsigned i = 0; i < d->n; i++) {
        mk_timer_stop(&d->of[i].timer);
        if (d->of[i].lookup)
            d->of[i].lookup->owner = NULL;
    }
    mk_thread_pool_free(d->threads);
    mk_thread_pool_free(d->file_threads);
    mk_watcher_free(d->watcher);
    mk_fd_close(&d->inotify_fd);
    mk_fd_close(&d->cancel_fd);
    for (unsigned i = 0; i < d->n; i++)
        mk_mem_free(d->of[i].result);
    mk_mem_free(d);
}
