/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: [REDIS] sections, and the connections of every worker. */
#include <duda/config.h>
#include <duda/redis.h>
#include <duda/request.h>
#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/text.h>

#include "common/package.h"
#include "redis.h"
#include "store_backend.h"
#include "topic_relay.h"

#define AT(member) MK_CONF_AT(struct redis_settings, member)

enum { PASSWORD_MAX = 1024 };

static const struct mk_conf_key keys[] = {
    PACKAGE_NAME_KEY,
    {.name = "Server",
     .type = MK_CONF_TEXT,
     AT(server),
     .max = 1024,
     .help = "Address: HOST:PORT, unix:/path or the Name of an [UPSTREAM] for TLS."},
    {.name = "User",
     .type = MK_CONF_TEXT,
     AT(user),
     .max = 255,
     .help = "User name for AUTH, with Password."},
    {.name = "Password",
     .type = MK_CONF_TEXT,
     AT(password),
     .max = PASSWORD_MAX,
     .help = "Password for AUTH, for tests only: PasswordSource keeps it outside of the configuration."},
    {.name = "PasswordSource",
     .type = MK_CONF_CUSTOM,
     AT(password_from),
     .parse = duda_secret,
     .syntax = DUDA_SECRET_SYNTAX,
     .help = "Source of the password for AUTH."},
    {.name = "Sentinel",
     .type = MK_CONF_TEXT,
     AT(sentinel),
     .max = 255,
     .help = "Name of the master; `Server` then lists Sentinels."},
    {.name = "Cluster",
     .type = MK_CONF_BOOL,
     AT(cluster),
     .default_value = "off",
     .help = "The servers in `Server` are nodes of a Redis Cluster; the worker learns about the other nodes "
             "from them."},
    {.name = "Replicas",
     .type = MK_CONF_NUM,
     AT(replicas),
     .default_value = "0",
     .max = 16,
     .help = "Number of replicas that must acknowledge a lock, session, job or other value of a store before "
             "the write succeeds, so that it survives a failover."},
    {.name = "TopicRelay",
     .type = MK_CONF_TEXT,
     AT(topic_relay),
     .max = 63,
     .help = "Relays messages of topics through this Redis to the servers of other machines with the same "
             "`TopicRelay`."},
    {.name = "Database",
     .type = MK_CONF_NUM,
     AT(database),
     .default_value = "0",
     .max = 65535,
     .help = "Number of the database, for SELECT."},
    {.name = "Timeout",
     .type = MK_CONF_TIME,
     AT(timeout_ms),
     .default_value = "2s",
     .min = 50,
     .max = 3600000,
     .help = "Timeout for a connection, and for the reply to a command."},
    {.name = "MaxQueue",
     .type = MK_CONF_NUM,
     AT(waiting_max),
     .default_value = "10000",
     .min = 1,
     .max = 1000000,
     .help = "Maximum number of calls of a worker that wait. Further ones fail."},
    {.name = "MaxReplySize",
     .type = MK_CONF_SIZE,
     AT(reply_max),
     .default_value = "16M",
     .min = 1024,
     .max = (uint64_t)1 << 30,
     .help = "Maximum size of a reply. A larger reply closes the connection."},
};

/* Sets a random ID of this machine, which its workers share. */
static bool init_origin_id(struct mk_config *config, struct redis_settings *s)
{
    uint64_t *origin = mk_config_shared(config, "duda-redis-origin", sizeof *origin);
    if (origin && !*origin)
        mk_random(origin, sizeof *origin);
    s->origin = origin;
    return origin != NULL;
}

static bool check_redis_section(struct mk_config *config, const struct package_sections *before,
                                void *settings)
{
    static const struct mk_upstream_defaults defaults = {.port = 6379};
    struct redis_settings *s = settings;
    for (size_t i = 0; i < before->n; i++)
        if (s->topic_relay.len && ((const struct redis_settings *)before->v[i])->topic_relay.len)
            mk_config_error(config, s, "TopicRelay", "another [REDIS] already has `TopicRelay`");
    if (s->password.len && s->password_from.len)
        mk_config_error(config, s, "PasswordSource", "use either Password or PasswordSource");
    else if (s->password_from.len)
        s->password = s->password_from;
    if (s->user.len && !s->password.len)
        mk_config_error(config, s, "User", "User needs Password or PasswordSource");
    else if (s->cluster && (s->sentinel.len || s->database))
        mk_config_error(config, s, "Cluster", "Cluster excludes Sentinel, and a Database other than 0");
    else
        s->upstream = mk_upstream_open(config, s, "Server", s->server, &defaults);
    if (s->cluster || s->sentinel.len) /* other servers are found while workers run */
        mk_config_allow_connect(config, s, s->cluster ? "Cluster" : "Sentinel", 0);
    return s->upstream && (!s->topic_relay.len || init_origin_id(config, s));
}

/* ---- In a worker ---- */

static int open_server(void *instance, struct mk_worker *w, const void *settings)
{
    struct duda_redis *r = instance;
    const struct redis_settings *s = settings;
    int e = redis_command_queue_init(&r->queue, w, s, NULL);
    e = e ? e : redis_pubsub_init(&r->pubsub, w, s);
    if (!e && s->cluster)
        e = (r->cluster = redis_cluster_new(w, s, &r->queue)) ? 0 : -ENOMEM;
    if (!e && s->topic_relay.len)
        e = (r->topic_relay = redis_topic_relay_new(w, &r->queue, &r->pubsub, r)) ? 0 : -ENOMEM;
    r->shared = redis_store_backend(r, s->name);
    return e ? e : duda_store_register(w, &r->shared);
}

static void close_server(void *instance)
{
    struct duda_redis *r = instance;
    redis_topic_relay_free(r->topic_relay);
    redis_cluster_free(r->cluster);
    redis_command_queue_fini(&r->queue);
    redis_pubsub_fini(&r->pubsub);
    while (r->dedicated) {
        struct redis_dedicated_conn *b = r->dedicated;
        r->dedicated = b->next;
        redis_dedicated_conn_free(b);
    }
}

PACKAGE_TYPE(redis, "REDIS", struct redis_settings, struct duda_redis, "A Redis server for Duda services.",
             .location = "Server", .max = DUDA_REDIS_SERVERS_MAX, .check_section = check_redis_section,
             .declare = duda_store_declare, .open = open_server, .close = close_server);

struct duda_redis *duda_redis_find(struct duda_ctx *d, const char *name)
{
    return package_find_instance(&kind, d, name);
}

struct duda_redis *duda_redis_of(struct mk_worker *worker, const char *name)
{
    return package_instance_of(&kind, worker, name);
}

PACKAGE_PLUGIN(redis, "Redis client for Duda services.", PACKAGE_HAS_TYPE,
               .needs = PACKAGE_NEEDS("upstream", "duda", "duda-store"));
