/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: [REDIS] sections, and connections of every worker. */
#include <duda/asked.h>
#include <duda/redis.h>
#include <errno.h>
#include <monkey/plugin.h>

#include "redis.h"
#include "shared.h"

#define AT(member) MK_CONF_AT(struct redis_settings, member)

MK_PLUGIN_DECLARE(duda_redis);

enum { PASSWORD_MAX = 1024 };

static const struct mk_conf_key keys[] = {
    {.name = "Name",
     .type = MK_CONF_TEXT,
     AT(name),
     .def = "main",
     .min = 1,
     .max = 63,
     .help = "What services call it, if there are several."},
    {.name = "Server",
     .type = MK_CONF_TEXT,
     AT(server),
     .max = 1024,
     .help = "Where it is: HOST:PORT, unix:/path or the Name of an [UPSTREAM], which adds TLS."},
    {.name = "User", .type = MK_CONF_TEXT, AT(user), .max = 255, .help = "For AUTH, with Password."},
    {.name = "Password",
     .type = MK_CONF_TEXT,
     AT(password),
     .max = PASSWORD_MAX,
     .help = "For AUTH. Take it from the environment: `${NAME}`."},
    {.name = "Database", .type = MK_CONF_NUM, AT(database), .def = "0", .max = 65535, .help = "For SELECT."},
    {.name = "Timeout",
     .type = MK_CONF_TIME,
     AT(timeout_ms),
     .def = "2s",
     .min = 50,
     .max = 3600000,
     .help = "For a connection, and for the reply to a command."},
    {.name = "MaxWaiting",
     .type = MK_CONF_NUM,
     AT(waiting_max),
     .def = "10000",
     .min = 1,
     .max = 1000000,
     .help = "How many calls of a worker may wait. More are refused."},
    {.name = "MaxReply",
     .type = MK_CONF_SIZE,
     AT(reply_max),
     .def = "16M",
     .min = 1024,
     .max = (uint64_t)1 << 30,
     .help = "How long a reply may be. A longer one closes the connection."},
};

static const struct mk_conf_table table = {
    .section = "REDIS",
    .keys = keys,
    .n = MK_LEN(keys),
    .repeatable = true,
    .help = "A Redis server for services of Duda.",
    .size = sizeof(struct redis_settings),
    .scope = MK_CONF_SERVER,
};

struct servers {
    const struct redis_settings *v[DUDA_REDIS_SERVERS_MAX];
    size_t n;
};

static void add(struct mk_config *config, struct servers *all, struct redis_settings *s)
{
    static const struct mk_upstream_defaults defaults = {.port = 6379};
    for (size_t i = 0; i < all->n; i++)
        if (mk_str_eq(all->v[i]->name, s->name)) {
            mk_config_error(config, s, "Name", "there are two [REDIS] `%.*s`", MK_STR_ARG(s->name));
            return;
        }
    if (all->n == MK_LEN(all->v))
        mk_config_error(config, s, NULL, "more than %zu [REDIS]", MK_LEN(all->v));
    else if (!s->server.len)
        mk_config_error(config, s, NULL, "[REDIS] has no Server");
    else if (s->user.len && !s->password.len)
        mk_config_error(config, s, "User", "a User needs a Password");
    else if ((s->upstream = mk_upstream_open(config, s, "Server", s->server, &defaults)))
        all->v[all->n++] = s;
}

static int load(struct mk_config *config, void **data)
{
    struct servers *all = mk_config_alloc(config, sizeof *all);
    if (!all)
        return -ENOMEM;
    for (struct redis_settings *s = NULL; (s = mk_config_section(config, &table, s));)
        add(config, all, s);
    if (!all->n)
        mk_config_warn(config, NULL, NULL, "duda-redis is loaded, but there is no [REDIS] with a Server");
    *data = all;
    return 0;
}

/* ---- In a worker ---- */

struct in_worker {
    size_t n;
    struct duda_redis v[DUDA_REDIS_SERVERS_MAX];
};

static void worker_stop(struct mk_worker *w, void *data)
{
    struct in_worker *mine = mk_worker_data(w, &MK_PLUGIN_OF(duda_redis));
    (void)data;
    for (size_t i = 0; mine && i < mine->n; i++) {
        redis_queue_fini(&mine->v[i].queue);
        redis_hub_fini(&mine->v[i].hub);
    }
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_redis), NULL);
    mk_mem_free(mine);
}

static int worker_start(struct mk_worker *w, void *data)
{
    const struct servers *all = data;
    struct in_worker *mine = mk_mem_zalloc(1, sizeof *mine);
    if (!mine)
        return -ENOMEM;
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_redis), mine);
    for (; mine->n < all->n;) {
        struct duda_redis *r = &mine->v[mine->n];
        int e = redis_queue_init(&r->queue, w, all->v[mine->n]);
        e = e ? e : redis_hub_init(&r->hub, w, all->v[mine->n]);
        r->shared = redis_shared(r, all->v[mine->n]->name);
        e = e ? e : duda_store_join(w, &r->shared);
        if (e == -EEXIST)
            mk_worker_log(w, MK_LOG_ERROR, "[REDIS] %.*s: a [KV] has this Name, too",
                          MK_STR_ARG(r->shared.name));
        mine->n++;
        if (e) {
            worker_stop(w, data);
            return e;
        }
    }
    return 0;
}

struct duda_redis *duda_redis_find(const struct duda *d, const char *name)
{
    struct in_worker *mine = mk_worker_data(duda_worker(d), &MK_PLUGIN_OF(duda_redis));
    for (size_t i = 0; mine && i < mine->n; i++)
        if (!name || mk_str_eq(mine->v[i].queue.conn.settings->name, mk_str_from_c(name)))
            return &mine->v[i];
    return NULL;
}

static const struct mk_conf_table *const sections[] = {&table, NULL};
static const char *const needs[] = {"upstream", "duda", "duda-store", NULL};

MK_PLUGIN(duda_redis) = {
    MK_PLUGIN_HEAD,
    .name = "duda-redis",
    .version = MK_VERSION,
    .help = "Redis for services of Duda.",
    .sections = sections,
    .load = load,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .needs = needs,
};
