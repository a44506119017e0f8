/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <errno.h>

const enum view metrics_views[VIEWS] = {VIEW_PROMETHEUS, VIEW_JSON, VIEW_PAGE, VIEW_HEALTH, VIEW_READY};

enum { NETWORKS_MAX = 256 };

/* ---- Networks ---- */

static void *append_element(const struct mk_conf_ctx *ctx, const void *old, size_t n, size_t size)
{
    char *grown = mk_conf_ctx_alloc(ctx, (n + 1) * size);
    if (grown && n)
        memcpy(grown, old, n * size);
    return grown;
}

static bool add_network(const struct mk_conf_ctx *ctx, struct networks *n, mk_str word)
{
    struct mk_network network;
    if (!mk_network_parse(word, &network)) {
        mk_conf_ctx_error(ctx, word, "expected an address, a network, `unix:` or `all`, not `%.*s`",
                          MK_STR_ARG(word));
        return false;
    }
    if (n->n == NETWORKS_MAX) {
        mk_conf_ctx_error(ctx, word, "there are more than %d networks", NETWORKS_MAX);
        return false;
    }
    struct mk_network *v = append_element(ctx, n->v, n->n, sizeof *v);
    mk_str *words = append_element(ctx, n->words, n->n, sizeof *words);
    if (!v || !words)
        return true;
    v[n->n] = network;
    words[n->n] = word;
    *n = (struct networks){v, words, n->n + 1};
    return true;
}

static bool parse_networks(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    mk_str word;
    while (true) {
        if (!mk_conf_ctx_word(ctx, &value, &word))
            return false;
        if (!word.p)
            return true;
        if (!add_network(ctx, field, word))
            return false;
    }
}

static bool show_networks(const void *field, size_t i, struct mk_buf *out)
{
    const struct networks *n = field;
    if (i >= n->n)
        return false;
    mk_buf_add(out, n->words[i]);
    return true;
}

bool metrics_networks_contain(const struct networks *n, const struct mk_addr *peer)
{
    for (size_t i = 0; i < n->n; i++)
        if (mk_network_contains(&n->v[i], peer))
            return true;
    return false;
}

bool metrics_networks_contain_all(const struct networks *n)
{
    for (size_t i = 0; i < n->n; i++)
        if (n->v[i].is_all)
            return true;
    return false;
}

/* ---- Tables ---- */

static bool parse_path(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct mk_pattern pattern;
    if (!mk_pattern_set(&pattern, value))
        return false;
    (void)ctx;
    *(mk_str *)field = value;
    return true;
}

static bool show_path(const void *field, size_t i, struct mk_buf *out)
{
    const mk_str *path = field;
    if (i > 0 || !path->p)
        return false;
    mk_buf_add(out, *path);
    return true;
}

static bool parse_file(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    mk_str path = mk_conf_ctx_path(ctx, value);
    if (path.p)
        *(mk_str *)field = path;
    return true;
}

/* clang-format off */
#define PATH(key, view, what)                                                                                \
    {.name = key, .type = MK_CONF_CUSTOM, MK_CONF_AT(struct settings, paths[view]),                          \
     .syntax = "a path pattern, such as `/status`", .parse = parse_path, .show = show_path, .help = MK_HELP(what)}
/* clang-format on */

static const struct mk_conf_key keys[] = {
    {.name = "Allow",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     MK_CONF_AT(struct settings, allow),
     .default_value = "127.0.0.0/8 ::1 unix:",
     .syntax = "networks",
     .parse = parse_networks,
     .show = show_networks,
     .help = MK_HELP("Networks with access; all other clients get 403.")},
    {.name = "AllowHealth",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     MK_CONF_AT(struct settings, allow_health),
     .syntax = "networks",
     .parse = parse_networks,
     .show = show_networks,
     .help = MK_HELP(
         "Additional networks with access to health and readiness checks, for example of a load balancer.")},
    PATH("Metrics", VIEW_PROMETHEUS, "Adds a route for the metrics in Prometheus text format."),
    PATH("Status", VIEW_JSON, "Adds a route for the metrics as JSON."),
    PATH("Live", VIEW_PAGE, "Adds a route for the live page."),
    PATH("Health", VIEW_HEALTH, "Adds a route that returns 200 while the worker responds."),
    PATH("Ready", VIEW_READY,
         "Adds a route that returns 503 while a load balancer should send no new clients."),
    {.name = "Count",
     .type = MK_CONF_BOOL,
     MK_CONF_AT(struct settings, count),
     .default_value = "on",
     .help = MK_HELP("Counts the requests of this host.")},
    {.name = "ByHost",
     .type = MK_CONF_BOOL,
     MK_CONF_AT(struct settings, by_host),
     .default_value = "off",
     .help = MK_HELP("Counts requests under the host's first `ServerName` instead of `other`.")},
    {.name = "MaxViewers",
     .type = MK_CONF_NUM,
     MK_CONF_AT(struct settings, viewers),
     .default_value = "16",
     .max = 1000,
     .zero_word = "off",
     .help = MK_HELP("Maximum concurrent viewers of the live page per worker; further viewers get 503.")},
    {.name = "ReadyConnections",
     .type = MK_CONF_NUM,
     MK_CONF_AT(struct settings, ready_connections),
     .default_value = "off",
     .zero_word = "off",
     .help = MK_HELP("Maximum connections of a worker, above which it is not ready.")},
    {.name = "NotReadyFile",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_READS,
     MK_CONF_AT(struct settings, not_ready_file),
     .syntax = "a file name",
     .parse = parse_file,
     .show = show_path,
     .help = MK_HELP("File that makes the server not ready while it exists.")},
};

const struct mk_conf_table metrics_table = {
    .section = "METRICS",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = MK_HELP("Access to the metrics, and their paths."),
    .size = sizeof(struct settings),
    .scope = MK_CONF_VHOST,
};

/* ---- Loading ---- */

int metrics_settings_load(struct mk_config *config, void **data)
{
    struct metrics *m = mk_config_alloc(config, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->processes = metrics_processes_new(config);
    m->history = mk_config_shared(config, "metrics/history", sizeof *m->history);
    if (!m->processes || !m->history || !metrics_request_counts_init(&m->counts, config))
        return -ENOMEM;
    m->certificates = mk_config_certificate_list(config);
    mk_config_allow_path(config, NULL, NULL, MK_STR("/proc/self/statm"));
    mk_config_allow_path(config, NULL, NULL, MK_STR("/proc/self/smaps_rollup"));
    *data = m;
    return 0;
}

int metrics_settings_host(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    struct site *site = mk_config_alloc(config, sizeof *site);
    if (!site)
        return -ENOMEM;
    const struct settings *s = mk_config_settings(config, &metrics_table);
    if (!s)
        return -ENOMEM;
    *site = (struct site){.settings = s, .metrics = data};
    if (s->count) {
        mk_str name = !s->by_host               ? MK_STR("other")
                      : mk_vhost_name(host).len ? mk_vhost_name(host)
                                                : MK_STR("-");
        struct label *l = metrics_request_counts_label(&((struct metrics *)data)->counts, config, name);
        if (!l)
            return -ENOMEM;
        site->label = l;
    }
    *host_data = site;
    return 0;
}
