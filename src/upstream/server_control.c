/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/server_control.h"

#include <errno.h>
#include <string.h>

#include "upstream/backend_set.h"
#include "upstream/endpoint.h"
#include "upstream/failover.h"
#include "upstream/health.h"
#include "upstream/pool.h"
#include "upstream/server_state.h"
#include "upstream/wait_queue.h"

#define LOAD(p)     __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)

/* The server in a spare slot. */
struct added_server {
    uint32_t version; /* odd while the other members change */
    uint32_t weight, is_backup;
    char name[MK_SERVER_NAME_MAX];
    uint8_t is_held[MK_UPSTREAM_WORKERS]; /* by row: the worker has a backend for the server */
};

struct mk_server_control_memory {
    uint32_t is_used; /* a server was added */
    struct added_server of[MK_UPSTREAM_SERVERS];
};

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

static bool is_held(const struct added_server *a)
{
    for (unsigned row = 0; row < MK_UPSTREAM_WORKERS; row++)
        if (LOAD(&a->is_held[row]))
            return true;
    return false;
}

/* Workers of an earlier configuration may still have connections to the server that had the slot. */
void mk_server_control_reset(const struct mk_upstreams *all, unsigned slot)
{
    bool is_vacant = !LOAD(&all->control->is_used) || !is_held(&all->control->of[slot]);
    mk_upstream_stats_set_mode(&all->stats, slot, is_vacant ? MK_SERVER_VACANT : MK_SERVER_REMOVED, 0);
}

void mk_server_control_clear_worker(struct mk_server_control_memory *m, unsigned row)
{
    for (unsigned i = 0; m && LOAD(&m->is_used) && i < MK_UPSTREAM_SERVERS; i++)
        if (LOAD(&m->of[i].is_held[row]))
            STORE(&m->of[i].is_held[row], 0);
}

static struct added_server *added_server_of(const struct mk_upstream_server *s)
{
    return &s->upstream->all->control->of[s->stats_slot];
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
static bool copy_added_server(const struct mk_upstream_server *s, struct added_server *out)
{
    const struct added_server *a = added_server_of(s);
    uint32_t version = LOAD(&a->version);
    if (version & 1 || mk_health_mode(s) >= MK_SERVER_REMOVED)
        return false;
    out->weight = a->weight;
    out->is_backup = a->is_backup;
    memcpy(out->name, a->name, sizeof out->name);
    out->name[sizeof out->name - 1] = '\0';
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return LOAD(&a->version) == version && mk_health_mode(s) < MK_SERVER_REMOVED;
}

static bool fill_server(struct mk_pool *p, struct mk_upstream_server *s, const struct added_server *a)
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
    s->name = name;
    return true;
}

/* The worker marks the slot as held before it reads the server: from then on, the slot is not reused. */
static void open_added_backend(struct mk_pool *p, struct mk_backend *o, struct mk_upstream_server *s)
{
    struct added_server a;
    uint8_t *held = &added_server_of(s)->is_held[p->row];
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
    STORE(&added_server_of(s)->is_held[p->row], 0);
    if (!is_held(added_server_of(s)))
        mk_stat_hide(p->stats.registry, mk_health_shared(s)->series, true);
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

struct command {
    struct mk_pool *pool;
    struct mk_backend_set *set;
    mk_str upstream, action, server;
    unsigned weight; /* 0: not given */
    bool is_backup, moves, saves;
    struct mk_buf *out;
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
    const struct mk_upstream *u = c->set->upstream;
    for (unsigned i = 0; i < u->n; i++)
        if (mk_str_eq(u->servers[i].name, c->server))
            return &u->servers[i];
    return NULL;
}

/* Changes the mode, and the weight unless it is 0. */
static void set_mode(const struct command *c, const struct mk_upstream_server *s, enum mk_server_mode mode,
                     unsigned weight)
{
    struct mk_upstream_stats_health *h = mk_health_shared(s);
    bool is_new = mode == MK_SERVER_ENABLED && LOAD(&h->mode) != MK_SERVER_ENABLED;
    if (is_new)
        STORE(&h->up_since_ms, mk_clock_ms()); /* SlowStart */
    mk_upstream_stats_set_mode(&c->pool->stats, s->stats_slot, mode, weight ? weight : LOAD(&h->weight));
    mk_stat_hide(c->pool->stats.registry, h->series, false);
    broadcast_change(c->pool, s);
}

/* ---- Adding a server ---- */

static struct mk_upstream_server *find_vacant(const struct command *c)
{
    const struct mk_upstream *u = c->set->upstream;
    for (unsigned i = 0; i < u->n; i++) {
        struct mk_upstream_server *s = &u->servers[i];
        if (s->is_spare && mk_health_mode(s) >= MK_SERVER_REMOVED && !is_held(added_server_of(s)))
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
    struct added_server *a = added_server_of(s);
    unsigned weight = c->weight ? c->weight : 1;
    STORE(&a->version, LOAD(&a->version) | 1); /* odd already: its writer died */
    STORE(&c->pool->upstreams->control->is_used, 1);
    *h = (struct mk_upstream_stats_health){.key = h->key, .mode = MK_SERVER_VACANT};
    memset(a->name, 0, sizeof a->name);
    memcpy(a->name, c->server.p, c->server.len);
    a->weight = weight;
    a->is_backup = c->is_backup;
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

static int change_server(const struct command *c)
{
    const struct mk_upstream_server *s = find_server(c);
    if (!s || mk_health_mode(s) >= MK_SERVER_REMOVED)
        return fail(c, -ENOENT, "the upstream has no server %.*s", MK_STR_ARG(mk_str_first(c->server, 80)));
    enum mk_server_mode mode = mk_health_mode(s);
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

static int run_command(const struct command *c)
{
    mk_server_control_open_added(c->pool); /* another worker may have added a server just now */
    int e = mk_str_eq(c->action, MK_STR("add")) ? add_server(c) : change_server(c);
    if (e)
        return e;
    e = c->saves ? mk_server_state_write(c->set->upstream) : 0;
    if (e) /* a single error code: others mean that nothing has changed */
        return fail(c, -EIO, "done, but not saved: cannot write %.*s: %s",
                    MK_STR_ARG(c->set->upstream->state_file), strerror(-e));
    mk_buf_addf(c->out, "done%s", c->saves ? ", and saved" : ", until the next reload or restart");
    return 0;
}

int mk_server_control_run(struct mk_pool *p, mk_str words, struct mk_buf *out)
{
    struct command c = {.pool = p, .out = out};
    int e = parse_command(&c, words);
    if (e)
        return e;
    if (!mk_conn_limit_lock_changes(&p->limit))
        return fail(&c, -EAGAIN, "another change is in progress: try again");
    e = run_command(&c);
    mk_conn_limit_unlock_changes(&p->limit);
    return e;
}
