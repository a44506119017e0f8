/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/server_control.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "upstream/added_server.h"
#include "upstream/backend_set.h"
#include "upstream/discovered.h"
#include "upstream/discovery_type.h"
#include "upstream/endpoint.h"
#include "upstream/failover.h"
#include "upstream/health.h"
#include "upstream/pool.h"
#include "upstream/saved_servers.h"
#include "upstream/wait_queue.h"

#define LOAD(p)     __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)

/* A name that outlives its server, because requests in progress refer to it. */
struct mk_server_name {
    struct mk_server_name *next;
    mk_str text;
    char bytes[];
};

/* ---- Shared memory ---- */

struct mk_server_control_memory *mk_server_control_init(struct mk_config *config)
{
    return mk_config_shared(config, "upstream/control", sizeof(struct mk_server_control_memory));
}

static bool is_held(const struct mk_added_server *a)
{
    for (unsigned row = 0; row < MK_UPSTREAM_WORKERS; row++)
        if (LOAD(&a->is_held[row]))
            return true;
    return false;
}

static const struct mk_discovery_source *find_source(const struct mk_upstream *u, uint64_t id)
{
    const struct mk_discovery_source *s = u->sources;
    while (s && s->id != id)
        s = s->next;
    return id ? s : NULL;
}

static struct mk_upstream_server *find_server_by_name(const struct mk_upstream *u, mk_str name)
{
    for (unsigned i = 0; i < u->n; i++)
        if (mk_str_eq(u->servers[i].name, name))
            return &u->servers[i];
    return NULL;
}

/* Has a source of the new configuration listed the server in this slot, which has the key of the slot? Or does the
 * configuration repeat the one to which the administrator has added the server? */
static bool is_kept(const struct mk_upstreams *all, const struct mk_upstream_server *s)
{
    const struct mk_upstream_stats_health *h = mk_health_shared(s);
    const struct mk_added_server *a = &all->control->of[s->stats_slot];
    const struct mk_upstream_stats_admin *before =
        mk_upstream_stats_former_admin(&all->stats, &all->former, s->stats_slot);
    return LOAD(&all->control->is_used) && h->key == all->plan.keys[s->stats_slot] &&
           LOAD(&before->mode) < MK_SERVER_REMOVED && !(LOAD(&a->version) & 1) &&
           (a->source ? find_source(s->upstream, a->source) != NULL : all->former.is_repeated) &&
           !find_server_by_name(s->upstream, mk_str_from_c(a->name));
}

static void publish_kept(struct mk_upstreams *all, const struct mk_upstream_server *s)
{
    const struct mk_upstream *u = s->upstream;
    const struct mk_added_server *a = &all->control->of[s->stats_slot];
    const mk_str names[] = {mk_str_from_c(a->name), u->name};
    struct mk_server_state_entry saved = {.mode = MK_SERVER_ENABLED};
    struct mk_upstream_stats_health *h = mk_health_shared(s);
    h->series = mk_stat_series(all->stats.registry, all->stats.table, names);
    mk_stat_hide(all->stats.registry, h->series, false);
    mk_upstream_stats_set_server(&all->stats, s->stats_slot, a->is_backup, a->weight, u->max);
    (void)mk_saved_servers_find(u, names[0], &saved);
    if (all->former.is_repeated)
        mk_upstream_stats_keep_mode(&all->stats, s->stats_slot);
    else
        mk_upstream_stats_set_mode(&all->stats, s->stats_slot, saved.mode,
                                   saved.weight ? saved.weight : a->weight);
}

/* Workers of an earlier configuration may still have connections to the server that had the slot. */
void mk_server_control_publish_spare(struct mk_upstreams *all, const struct mk_upstream_server *s)
{
    unsigned slot = s->stats_slot;
    bool keeps = is_kept(all, s);
    mk_upstream_stats_reserve_slot(&all->stats, slot, all->plan.keys[slot]);
    bool is_vacant = !LOAD(&all->control->is_used) || !is_held(&all->control->of[slot]);
    if (keeps)
        publish_kept(all, s);
    else
        mk_upstream_stats_set_mode(&all->stats, slot, is_vacant ? MK_SERVER_VACANT : MK_SERVER_REMOVED, 0);
}

void mk_server_control_clear_worker(struct mk_server_control_memory *m, unsigned row)
{
    for (unsigned i = 0; m && LOAD(&m->is_used) && i < MK_UPSTREAM_SERVERS; i++)
        if (LOAD(&m->of[i].is_held[row]))
            STORE(&m->of[i].is_held[row], 0);
}

/* ---- The backends of added servers ---- */

static mk_str intern_name(struct mk_pool *p, mk_str text)
{
    for (const struct mk_server_name *n = p->names; n; n = n->next)
        if (mk_str_eq(n->text, text))
            return n->text;
    struct mk_server_name *n = mk_mem_zalloc(1, sizeof *n + text.len + 1);
    if (!n)
        return mk_str_of(NULL, 0);
    memcpy(n->bytes, text.p, text.len);
    n->text = mk_str_of(n->bytes, text.len);
    n->next = p->names;
    p->names = n;
    return n->text;
}

void mk_server_control_free_names(struct mk_pool *p)
{
    while (p->names) {
        struct mk_server_name *n = p->names;
        p->names = n->next;
        mk_mem_free(n);
    }
}

/* Copies the server from shared memory. False: another worker is changing it, and will send a message. */
static bool copy_added_server(const struct mk_upstream_server *s, struct mk_added_server *out)
{
    const struct mk_added_server *a = mk_added_server_of(s);
    uint32_t version = LOAD(&a->version);
    if (version & 1 || mk_health_mode(s) >= MK_SERVER_REMOVED)
        return false;
    out->weight = a->weight;
    out->source = a->source;
    out->is_backup = a->is_backup;
    memcpy(out->name, a->name, sizeof out->name);
    out->name[sizeof out->name - 1] = '\0';
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return LOAD(&a->version) == version && mk_health_mode(s) < MK_SERVER_REMOVED;
}

/* The certificate of a discovered server is for the domain that was looked up, not for its address (RFC 6125). */
static mk_str tls_name_of(const struct mk_upstream *u, uint64_t id)
{
    const struct mk_discovery_source *s = find_source(u, id);
    mk_str name = s ? s->host : mk_str_of(NULL, 0);
    while (s && s->kind == MK_DISCOVER_SRV &&
           mk_str_starts(name, MK_STR("_"))) /* _SERVICE._PROTOCOL.DOMAIN */
        name = mk_str_skip(name, mk_min(mk_str_find(name, '.'), name.len - 1) + 1);
    return name;
}

static bool fill_server(struct mk_pool *p, struct mk_upstream_server *s, const struct mk_added_server *a)
{
    const struct mk_upstream *u = s->upstream;
    struct mk_endpoint at;
    mk_str name = intern_name(p, mk_str_from_c(a->name));
    if (!name.p || !mk_endpoint_parse(&at, name))
        return false;
    s->host = at.host.p ? intern_name(p, at.host) : at.host;
    if (at.host.p && !s->host.p)
        return false;
    s->path = at.path;
    s->port = at.port ? at.port : u->defaults.port;
    s->weight = s->written = a->weight;
    s->backup = a->is_backup;
    s->id = mk_upstream_stats_server_id(&u->id_key, u->name, name);
    s->key = mk_upstream_stats_key(u->name, name);
    s->shared = mk_upstream_stats_shared(&u->all->stats, s->stats_slot);
    s->tls_name = tls_name_of(u, a->source);
    s->name = name;
    return true;
}

/* The worker marks the slot as held before it reads the server: from then on, the slot is not reused. */
static void open_added_backend(struct mk_pool *p, struct mk_backend *o, struct mk_upstream_server *s)
{
    struct mk_added_server a;
    uint8_t *held = &mk_added_server_of(s)->is_held[p->row];
    STORE(held, 1);
    if (!copy_added_server(s, &a) || !fill_server(p, s, &a)) {
        STORE(held, 0);
        return;
    }
    if (!mk_backend_open(p, o, s))
        mk_worker_log(p->worker, MK_LOG_ERROR, "upstream %.*s: out of memory for the server %.*s",
                      MK_STR_ARG(s->upstream->name), MK_STR_ARG(s->name));
}

static void open_added_in_set(struct mk_pool *p, struct mk_backend_set *g)
{
    for (unsigned i = 0; i < g->upstream->n; i++) {
        struct mk_upstream_server *s = &g->upstream->servers[i];
        if (s->is_spare && !s->name.p && mk_health_mode(s) < MK_SERVER_REMOVED)
            open_added_backend(p, &g->backends[i], s);
    }
}

void mk_server_control_open_added(struct mk_pool *p)
{
    for (unsigned i = 0; p->upstreams->control && i < p->upstreams->n; i++)
        open_added_in_set(p, &p->sets[i]);
}

static void close_idle(struct mk_backend *o)
{
    struct mk_upstream_conn *c;
    while ((c = mk_pool_pop_idle(o)))
        mk_pool_close_conn(c);
}

static void close_added_backend(struct mk_backend *o)
{
    struct mk_pool *p = o->pool;
    struct mk_backend_set *g = o->set;
    struct mk_upstream_server *s = &g->upstream->servers[o->server->index];
    mk_backend_close(p, o);
    *o = (struct mk_backend){.pool = p, .set = g};
    s->name = mk_str_of(NULL, 0);
    s->id = 0;
    (void)mk_backend_open(p, o, s);
    STORE(&mk_added_server_of(s)->is_held[p->row], 0);
    if (!is_held(mk_added_server_of(s)))
        mk_upstream_stats_hide_series(&p->stats, mk_health_shared(s)->series);
}

/* Opens the backend of a server that another worker has added, if its message did not arrive: the worker may not
 * have been able to send it, or may have died before. */
static void open_missed_backend(struct mk_backend *o)
{
    struct mk_upstream_server *s = &o->set->upstream->servers[o->server->index];
    if (!LOAD(&o->pool->upstreams->control->is_used) || s->name.p || LOAD(o->mode) >= MK_SERVER_REMOVED)
        return;
    open_added_backend(o->pool, o, s);
    if (s->name.p)
        mk_pool_serve_backend(o);
}

bool mk_server_control_sweep(struct mk_backend *o)
{
    if (MK_UNLIKELY(o->server->is_spare))
        open_missed_backend(o);
    if (MK_LIKELY(LOAD(o->mode) < MK_SERVER_MOVES) || !o->server->name.p)
        return false;
    close_idle(o);
    if (LOAD(o->mode) < MK_SERVER_REMOVED || !o->server->is_spare)
        return false;
    if (o->n_open)
        return true;
    close_added_backend(o);
    return false;
}

/* ---- Messages ---- */

struct change_message {
    uint32_t server; /* mk_failover_encode() */
    uint32_t is_change;
};

/* Tells all workers at once. Workers that the message does not reach notice the change in their next sweep. */
static void broadcast_change(struct mk_pool *p, const struct mk_upstream_server *s)
{
    const struct change_message m = {.server = mk_failover_encode(s), .is_change = 1};
    (void)mk_worker_send(p->worker, p->upstreams->plugin, MK_TO_ALL, mk_str_of((const char *)&m, sizeof m));
}

static void apply_change(struct mk_pool *p, struct mk_backend *o)
{
    struct mk_backend_set *g = o->set;
    open_added_in_set(p, g);
    if (LOAD(o->mode) >= MK_SERVER_MOVES)
        close_idle(o);
    mk_backend_publish_health(o);
    mk_wait_queue_publish(g); /* waiting requests may use other servers now */
    mk_wait_queue_wake_older(o);
    mk_pool_serve_queue(g);
    mk_pool_schedule_sweep(p);
}

bool mk_server_control_on_message(struct mk_pool *p, mk_str message)
{
    struct change_message m;
    if (message.len != sizeof m)
        return false;
    memcpy(&m, message.p, sizeof m);
    unsigned index = mk_failover_decode_upstream(m.server);
    int server = mk_failover_decode_server(m.server);
    struct mk_backend_set *g = index < p->upstreams->n ? &p->sets[index] : NULL;
    if (g && server >= 0 && server < (int)g->upstream->n)
        apply_change(p, &g->backends[server]);
    return true;
}

/* ---- Commands ---- */

enum { SAVE_TEXT_MAX = PATH_MAX + 256 };

struct command {
    struct mk_pool *pool;
    struct mk_backend_set *set;
    mk_str upstream, action, server;
    unsigned weight; /* 0: not given */
    bool is_backup, moves, saves;
    uint64_t source; /* mk_discovery_source.id; 0: a command of the administrator */
    struct mk_buf *out;
    const struct mk_command_end *end; /* NULL: the response cannot be deferred */
};

static int fail(const struct command *c, int error, const char *fmt, ...) MK_API_PRINTF(3, 4);

static int fail(const struct command *c, int error, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(c->out, fmt, args);
    va_end(args);
    return error;
}

static int parse_weight(struct command *c, mk_str text)
{
    uint64_t n;
    if (!mk_num_parse(text, &n) || n < 1 || n > MK_SERVER_WEIGHT_MAX)
        return fail(c, -EINVAL, "a weight is a number from 1 to %d", MK_SERVER_WEIGHT_MAX);
    c->weight = (unsigned)n;
    return 0;
}

static int parse_option(struct command *c, mk_str word)
{
    static const mk_str weight = MK_STR_INIT("weight=");
    bool adds = mk_str_eq(c->action, MK_STR("add"));
    if (mk_str_eq(word, MK_STR("--save")))
        c->saves = true;
    else if (adds && mk_str_eq(word, MK_STR("backup")))
        c->is_backup = true;
    else if (mk_str_eq(c->action, MK_STR("drain")) && mk_str_eq(word, MK_STR("move")))
        c->moves = true;
    else if (adds && mk_str_starts(word, weight))
        return parse_weight(c, mk_str_skip(word, weight.len));
    else if (!c->weight && mk_str_eq(c->action, MK_STR("weight")))
        return parse_weight(c, word);
    else
        return fail(c, -EINVAL, "`%.*s` is not an option of `%.*s`", MK_STR_ARG(mk_str_first(word, 80)),
                    MK_STR_ARG(c->action));
    return 0;
}

static int find_set(struct command *c)
{
    for (const struct mk_upstream *u = c->pool->upstreams->first; u; u = u->next)
        if (!u->max_hosts && mk_str_eq(u->name, c->upstream))
            c->set = &c->pool->sets[u->index];
    if (!c->set)
        return fail(c, -ENOENT, "no route uses an upstream `%.*s`",
                    MK_STR_ARG(mk_str_first(c->upstream, 80)));
    if (c->saves && !c->set->upstream->state_file.p)
        return fail(c, -EINVAL, "--save needs a StateFile in the [UPSTREAM] %.*s", MK_STR_ARG(c->upstream));
    return 0;
}

static int parse_command(struct command *c, mk_str words)
{
    c->upstream = mk_str_word(&words);
    c->action = mk_str_word(&words);
    c->server = mk_str_word(&words);
    if (!c->server.len)
        return fail(c, -EINVAL,
                    "expected NAME, then `add`, `remove`, `drain`, `enable` or `weight`, and a server");
    for (mk_str word; (word = mk_str_word(&words)).len;) {
        int e = parse_option(c, word);
        if (e)
            return e;
    }
    return find_set(c);
}

static struct mk_upstream_server *find_server(const struct command *c)
{
    return find_server_by_name(c->set->upstream, c->server);
}

/* Changes the mode, and the weight unless it is 0. */
static void set_mode(const struct command *c, const struct mk_upstream_server *s, enum mk_server_mode mode,
                     unsigned weight)
{
    struct mk_upstream_stats_health *h = mk_health_shared(s);
    bool is_new = mode == MK_SERVER_ENABLED && mk_health_mode(s) != MK_SERVER_ENABLED;
    if (is_new)
        STORE(&h->up_since_ms, mk_clock_ms()); /* SlowStart */
    mk_upstream_stats_set_mode(&c->pool->stats, s->stats_slot, mode,
                               weight ? weight : LOAD(&mk_health_admin(s)->weight));
    mk_stat_hide(c->pool->stats.registry, h->series, false);
    broadcast_change(c->pool, s);
}

/* ---- Adding a server ---- */

static struct mk_upstream_server *find_vacant(const struct command *c)
{
    const struct mk_upstream *u = c->set->upstream;
    for (unsigned i = 0; i < u->n; i++) {
        struct mk_upstream_server *s = &u->servers[i];
        if (s->is_spare && mk_health_mode(s) >= MK_SERVER_REMOVED && !is_held(mk_added_server_of(s)))
            return s;
    }
    return NULL;
}

/* Creates the statistics of the server. They are optional. */
static void create_series(const struct command *c, const struct mk_upstream_server *s)
{
    struct mk_upstream_stats *stats = &c->pool->stats;
    const mk_str names[] = {c->server, c->upstream};
    uint32_t series = MK_STAT_RETRY;
    for (unsigned i = 0; series == MK_STAT_RETRY && i < 1000; i++)
        series = mk_stat_series(stats->registry, stats->table, names);
    mk_health_shared(s)->series = series == MK_STAT_RETRY ? 0 : series;
}

/* Other workers read the memory of a vacant slot only in copy_added_server(), which compares versions. */
static void fill_vacant(const struct command *c, struct mk_upstream_server *s)
{
    struct mk_upstream_stats *stats = &c->pool->stats;
    struct mk_upstream_stats_health *h = mk_health_shared(s);
    struct mk_added_server *a = mk_added_server_of(s);
    unsigned weight = c->weight ? c->weight : 1;
    STORE(&a->version, LOAD(&a->version) | 1); /* odd already: its writer died */
    STORE(&c->pool->upstreams->control->is_used, 1);
    *h = (struct mk_upstream_stats_health){.key = h->key};
    mk_upstream_stats_set_mode(stats, s->stats_slot, MK_SERVER_VACANT, 0);
    memset(a->name, 0, sizeof a->name);
    memcpy(a->name, c->server.p, c->server.len);
    a->weight = weight;
    a->is_backup = c->is_backup;
    a->source = c->source;
    mk_conn_limit_reset_backend(&c->pool->limit, s->stats_slot);
    create_series(c, s);
    mk_upstream_stats_set_server(stats, s->stats_slot, c->is_backup, weight, s->upstream->max);
    STORE(&a->version, LOAD(&a->version) + 1);
    set_mode(c, s, MK_SERVER_ENABLED, weight);
}

static int check_new_server(const struct command *c)
{
    struct mk_endpoint at;
    if (c->server.len >= MK_SERVER_NAME_MAX || !mk_endpoint_parse(&at, c->server))
        return fail(c, -EINVAL, "`%.*s` is not a server: expected HOST:PORT, [ADDRESS6]:PORT or unix:/path",
                    MK_STR_ARG(mk_str_first(c->server, 80)));
    if (at.path.p && at.path.p[0] != '/')
        return fail(c, -EINVAL, "the path of a socket begins with `/`");
    if (!at.path.p && !at.port && !c->set->upstream->defaults.port)
        return fail(c, -EINVAL, "the server `%.*s` needs a port", MK_STR_ARG(c->server));
    return 0;
}

static int add_server(const struct command *c)
{
    struct mk_upstream_server *s = find_server(c);
    int e = check_new_server(c);
    if (e)
        return e;
    if (s && mk_health_mode(s) < MK_SERVER_REMOVED)
        return fail(c, -EEXIST, "the upstream has the server %.*s already", MK_STR_ARG(c->server));
    if (s && s->backup != c->is_backup)
        return fail(c, -EEXIST, "the server %.*s was removed, but still has connections",
                    MK_STR_ARG(c->server));
    if (s) {
        if (s->is_spare)
            mk_added_server_of(s)->source = 0;
        set_mode(c, s, MK_SERVER_ENABLED, c->weight);
        return 0;
    }
    if (c->pool->limit.lock_fd < 0)
        return fail(c, -ENOSYS, "workers that are threads cannot add servers");
    s = find_vacant(c);
    if (!s)
        return fail(c, -ENOSPC, "the upstream has no room for another server: see MaxServers");
    fill_vacant(c, s);
    return 0;
}

/* ---- Changing a server ---- */

static mk_str source_name(const struct mk_upstream_server *s)
{
    const struct mk_discovery_source *source = find_source(s->upstream, mk_added_server_of(s)->source);
    return source ? source->name : MK_STR("a source");
}

static int change_server(const struct command *c)
{
    const struct mk_upstream_server *s = find_server(c);
    if (!s || mk_health_mode(s) >= MK_SERVER_REMOVED)
        return fail(c, -ENOENT, "the upstream has no server %.*s", MK_STR_ARG(mk_str_first(c->server, 80)));
    enum mk_server_mode mode = mk_health_mode(s);
    if (mk_str_eq(c->action, MK_STR("remove")) && mk_added_server_listed_weight(s))
        return fail(c, -EEXIST, "`%.*s` lists the server %.*s: drain it, or remove it there",
                    MK_STR_ARG(source_name(s)), MK_STR_ARG(c->server));
    if (mk_str_eq(c->action, MK_STR("remove")))
        mode = MK_SERVER_REMOVED;
    else if (mk_str_eq(c->action, MK_STR("drain")))
        mode = c->moves ? MK_SERVER_MOVES : MK_SERVER_DRAINS;
    else if (mk_str_eq(c->action, MK_STR("enable")))
        mode = MK_SERVER_ENABLED;
    else if (!mk_str_eq(c->action, MK_STR("weight")))
        return fail(c, -EINVAL, "expected `add`, `remove`, `drain`, `enable` or `weight`");
    else if (!c->weight)
        return fail(c, -EINVAL, "`weight` needs a number from 1 to %d", MK_SERVER_WEIGHT_MAX);
    set_mode(c, s, mode, c->weight);
    return 0;
}

/* ---- Saving ---- */

struct save {
    struct mk_pool *pool;
    const struct mk_upstream *upstream;
    struct mk_command_end end;
    char path[PATH_MAX];
    size_t path_len, len;
    mk_err error;
    char text[MK_SERVER_STATE_FILE_MAX];
};

/* Appends the response. The error is always the same, because others mean that nothing has changed. */
static int report_save(const struct save *s, struct mk_buf *out)
{
    if (s->error)
        mk_buf_addf(out, "done, but not saved: cannot write %s: %s", s->path, strerror(-s->error));
    else
        mk_buf_add(out, MK_STR("done, and saved"));
    return s->error ? -EIO : 0;
}

static void write_state(void *ctx)
{
    struct save *s = ctx;
    if (!s->error)
        s->error = mk_server_state_write(mk_str_of(s->path, s->path_len), mk_str_of(s->text, s->len));
}

static void on_state_written(void *ctx)
{
    struct save *s = ctx;
    char buf[SAVE_TEXT_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    s->pool->saves_state = false;
    mk_saved_servers_file_written(s->upstream);
    mk_conn_limit_unlock_changes(&s->pool->limit);
    int e = report_save(s, &text);
    s->end.done(s->end.ctx, e, mk_buf_str(&text));
    mk_mem_free(s);
}

static struct save *new_save(const struct command *c)
{
    const struct mk_upstream *u = c->set->upstream;
    struct save *s = mk_mem_alloc(sizeof *s);
    if (!s)
        return NULL;
    struct mk_buf text = mk_buf_fixed(s->text, sizeof s->text);
    mk_server_state_save(u, &text);
    s->pool = c->pool;
    s->upstream = u;
    s->len = text.len;
    s->path_len = u->state_file.len < sizeof s->path ? u->state_file.len : 0; /* 0: the write fails */
    memcpy(s->path, u->state_file.p, s->path_len);
    s->path[s->path_len] = '\0';
    s->error = text.failed ? -EMSGSIZE : 0;
    return s;
}

/* Without a free thread, the loop waits for the disk. */
static int save_state(const struct command *c)
{
    struct save *s = new_save(c);
    if (!s)
        return fail(c, -EIO, "done, but not saved: out of memory");
    if (c->end) {
        s->end = *c->end;
        if (mk_worker_offload(c->pool->worker, write_state, on_state_written, s) == 0) {
            c->pool->saves_state = true;
            return -EINPROGRESS;
        }
    }
    write_state(s);
    mk_saved_servers_file_written(s->upstream);
    int e = report_save(s, c->out);
    mk_mem_free(s);
    return e;
}

/* ---- Commands ---- */

static int run_command(const struct command *c)
{
    mk_server_control_open_added(c->pool); /* another worker may have added a server just now */
    int e = mk_str_eq(c->action, MK_STR("add")) ? add_server(c) : change_server(c);
    if (e)
        return e;
    if (c->saves) {
        mk_server_control_open_added(c->pool); /* the file contains the server that was just added */
        return save_state(c);
    }
    mk_buf_add(c->out, MK_STR("done, until you reload or restart the server"));
    return 0;
}

/* The lock is for processes. While a thread saves, this process keeps it. */
static bool lock_changes(const struct mk_pool *p)
{
    return !p->saves_state && mk_conn_limit_lock_changes(&p->limit);
}

int mk_server_control_run(struct mk_pool *p, mk_str words, struct mk_buf *out,
                          const struct mk_command_end *end)
{
    struct command c = {.pool = p, .out = out, .end = end};
    int e = parse_command(&c, words);
    if (e)
        return e;
    if (!lock_changes(p))
        return fail(&c, -EAGAIN, "another change is in progress: try again");
    e = run_command(&c);
    if (e != -EINPROGRESS)
        mk_conn_limit_unlock_changes(&p->limit);
    return e;
}

/* ---- Discovery ---- */

bool mk_server_control_has_discovered(const struct mk_discovery_source *source)
{
    const struct mk_upstream *u = source->upstream;
    for (unsigned i = 0; u->all->control && i < u->n; i++)
        if (u->servers[i].is_spare && mk_health_mode(&u->servers[i]) < MK_SERVER_REMOVED &&
            u->all->control->of[u->servers[i].stats_slot].source == source->id)
            return true;
    return false;
}

void mk_server_control_notify(struct mk_pool *p, const struct mk_upstream *u)
{
    broadcast_change(p, &u->servers[0]);
}

static const struct mk_discovered_server *find_discovered(const struct mk_discovered *list, mk_str name)
{
    for (unsigned i = 0; i < list->n; i++)
        if (mk_str_eq(mk_str_from_c(list->of[i].name), name))
            return &list->of[i];
    return NULL;
}

static bool is_of_source(const struct command *c, const struct mk_upstream_server *s)
{
    return s->is_spare && s->name.p && mk_added_server_of(s)->source == c->source;
}

static void log_discovered(const struct command *c, const struct mk_discovery_source *source,
                           const char *what)
{
    mk_worker_log(c->pool->worker, MK_LOG_INFO, "upstream %.*s: the server %.*s is %s by %.*s",
                  MK_STR_ARG(c->upstream), MK_STR_ARG(c->server), what, MK_STR_ARG(source->name));
}

static void remove_missing(struct command *c, const struct mk_discovery_source *source,
                           const struct mk_discovered *found)
{
    const struct mk_upstream *u = c->set->upstream;
    for (unsigned i = 0; i < u->n; i++) {
        struct mk_upstream_server *s = &u->servers[i];
        if (!is_of_source(c, s) || mk_health_mode(s) >= MK_SERVER_REMOVED)
            continue;
        const struct mk_discovered_server *listed = find_discovered(found, s->name);
        if (listed ? listed->is_backup == s->backup : found->keeps[mk_str_starts(s->name, MK_STR("["))])
            continue;
        c->server = s->name;
        set_mode(c, s, MK_SERVER_REMOVED, 0);
        log_discovered(c, source, listed ? "changed" : "no longer listed");
    }
}

/* The weight of the administrator applies until the weight in the source changes. */
static void update_weight(const struct command *c, struct mk_upstream_server *s)
{
    struct mk_added_server *a = mk_added_server_of(s);
    if (a->weight == c->weight)
        return;
    STORE(&a->version, LOAD(&a->version) | 1);
    a->weight = c->weight;
    STORE(&a->version, LOAD(&a->version) + 1);
    set_mode(c, s, mk_health_mode(s), c->weight);
}

static void enable_discovered(struct command *c, const struct mk_discovery_source *source,
                              struct mk_upstream_server *s, bool is_new)
{
    struct mk_server_state_entry saved;
    if (is_new)
        fill_vacant(c, s);
    else
        set_mode(c, s, MK_SERVER_ENABLED, c->weight);
    if (mk_saved_servers_find(source->upstream, c->server, &saved))
        set_mode(c, s, saved.mode, saved.weight ? saved.weight : c->weight);
    log_discovered(c, source, "listed");
}

/* -ENOSPC: there is no room; -EAGAIN: a removed server of the same name, or any other, still occupies its slot. */
static int add_discovered(struct command *c, const struct mk_discovery_source *source)
{
    struct mk_upstream_server *s = find_server(c);
    if (s && mk_health_mode(s) < MK_SERVER_REMOVED) {
        if (is_of_source(c, s))
            update_weight(c, s);
        return 0;
    }
    if (s && !s->is_spare)
        return 0; /* the administrator has removed it */
    if (s && (s->backup != c->is_backup || !is_of_source(c, s)))
        return -EAGAIN;
    bool is_new = !s;
    s = s ? s : find_vacant(c);
    if (s)
        enable_discovered(c, source, s, is_new);
    return s ? 0 : -ENOSPC;
}

static bool has_leaving_server(const struct command *c)
{
    const struct mk_upstream *u = c->set->upstream;
    for (unsigned i = 0; i < u->n; i++)
        if (u->servers[i].is_spare && mk_health_mode(&u->servers[i]) >= MK_SERVER_REMOVED)
            return true;
    return false;
}

int mk_server_control_apply(struct mk_pool *p, const struct mk_discovery_source *source,
                            const struct mk_discovered *found, unsigned *n_without_room)
{
    const struct mk_upstream *u = source->upstream;
    struct command c = {.pool = p, .set = &p->sets[u->index], .upstream = u->name, .source = source->id};
    bool is_incomplete = false;
    *n_without_room = 0;
    if (!lock_changes(p))
        return -EAGAIN;
    mk_server_control_open_added(p);
    remove_missing(&c, source, found);
    for (unsigned i = 0; i < found->n; i++) {
        c.server = mk_str_from_c(found->of[i].name);
        c.weight = found->of[i].weight;
        c.is_backup = found->of[i].is_backup;
        int e = add_discovered(&c, source);
        *n_without_room += e == -ENOSPC;
        is_incomplete |= e == -EAGAIN;
    }
    is_incomplete |= *n_without_room && has_leaving_server(&c);
    mk_conn_limit_unlock_changes(&p->limit);
    return is_incomplete ? -EAGAIN : 0;
}
