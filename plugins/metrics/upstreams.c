/* SPDX-License-Identifier: Apache-2.0 */
#include "upstreams.h"

#include "exposition.h"

/* The table cuts long names, such as paths of sockets, which may differ only behind the cut; Prometheus
 * accepts no two samples with the same labels, nor half a character. */
static void write_server(struct upstream_view *u, size_t place)
{
    struct mk_buf out = mk_buf_fixed(u->server_room, sizeof u->server_room);
    mk_str name = mk_str_from_c(u->info.server);
    bool is_cut = name.len == MK_UPSTREAM_NAME - 1;
    while (is_cut && name.len && (unsigned char)name.p[name.len - 1] >= 0x80)
        name.len--;
    mk_buf_add(&out, name);
    if (is_cut)
        mk_buf_addf(&out, "~%zu", place);
    u->server = mk_buf_str(&out);
}

bool metrics_upstreams_next(const struct mk_upstream_stats_table *table, size_t *i, struct upstream_view *out)
{
    while (mk_upstream_info_at(table, *i, &out->info)) {
        size_t place = (*i)++;
        if (!out->info.server[0])
            continue;
        out->upstream = mk_str_from_c(out->info.upstream);
        write_server(out, place);
        /* Workers change both at any time. */
        out->busy = out->info.open > out->info.idle ? out->info.open - out->info.idle : 0;
        return true;
    }
    return false;
}

const char *metrics_upstreams_state(const struct upstream_view *u)
{
    static const char *const names[] = {[MK_UPSTREAM_UP] = "up",
                                        [MK_UPSTREAM_SLOW_START] = "slow_start",
                                        [MK_UPSTREAM_DOWN] = "down",
                                        [MK_UPSTREAM_UNRESOLVED] = "unresolved"};
    return u->info.state < MK_LEN(names) ? names[u->info.state] : "down";
}

/* ---- Prometheus ---- */

static uint64_t up_of(const struct upstream_view *u)
{
    return u->info.state == MK_UPSTREAM_UP || u->info.state == MK_UPSTREAM_SLOW_START;
}

static uint64_t busy_of(const struct upstream_view *u)
{
    return u->busy;
}

static uint64_t idle_of(const struct upstream_view *u)
{
    return u->info.idle;
}

static uint64_t waiting_of(const struct upstream_view *u)
{
    return u->info.waiting;
}

static uint64_t requests_of(const struct upstream_view *u)
{
    return u->info.requests;
}

static uint64_t failures_of(const struct upstream_view *u)
{
    return u->info.failures;
}

static uint64_t checks_of(const struct upstream_view *u)
{
    return u->info.checks;
}

static uint64_t checks_failed_of(const struct upstream_view *u)
{
    return u->info.checks_failed;
}

struct family {
    const char *name, *type, *help;
    const char *state; /* a further label; NULL: none */
    uint64_t (*value)(const struct upstream_view *u);
};

#define CONNECTIONS "monkey_upstream_connections"

/* Without `help`, a line continues the family before it. */
static const struct family families[] = {
    {"monkey_upstream_up", "gauge", "1: the server gets requests; 0: it is down, or its name has no address.",
     NULL, up_of},
    {CONNECTIONS, "gauge", "Connections to the server; busy: in use, or connecting.", "busy", busy_of},
    {CONNECTIONS, "gauge", NULL, "idle", idle_of},
    {"monkey_upstream_waiting", "gauge",
     "Requests that wait for a connection; those for any server of an upstream are with its first one.", NULL,
     waiting_of},
    {"monkey_upstream_requests_total", "counter",
     "Requests that got a connection to the server, repeated ones included.", NULL, requests_of},
    {"monkey_upstream_failures_total", "counter",
     "Attempts to connect or to get a response that failed because of the server.", NULL, failures_of},
    {"monkey_upstream_checks_total", "counter", "Health checks of the server.", NULL, checks_of},
    {"monkey_upstream_checks_failed_total", "counter", "Health checks that the server failed.", NULL,
     checks_failed_of},
};

static void add_server(struct mk_buf *out, const char *name, const struct upstream_view *u)
{
    mk_buf_add(out, mk_str_from_c(name));
    metrics_exposition_add_label(out, true, "upstream", u->upstream);
    metrics_exposition_add_label(out, false, "server", u->server);
}

static void print_family(const struct mk_upstream_stats_table *table, const struct family *f,
                         struct mk_buf *out)
{
    struct upstream_view u;
    if (f->help)
        metrics_exposition_begin(out, f->name, f->type, f->help);
    for (size_t i = 0; metrics_upstreams_next(table, &i, &u);) {
        add_server(out, f->name, &u);
        if (f->state)
            metrics_exposition_add_label(out, false, "state", mk_str_from_c(f->state));
        mk_buf_add_char(out, '}');
        metrics_exposition_add_value(out, f->value(&u));
    }
}

/* A server without an answer so far has none. */
static void print_latency(const struct mk_upstream_stats_table *table, struct mk_buf *out)
{
    static const char name[] = "monkey_upstream_latency_seconds";
    struct upstream_view u;
    metrics_exposition_begin(out, name, "gauge",
                             "Time until a response begins, as a moving average over the last requests.");
    for (size_t i = 0; metrics_upstreams_next(table, &i, &u);) {
        if (!u.info.latency_us)
            continue;
        add_server(out, name, &u);
        mk_buf_add(out, MK_STR("} "));
        metrics_exposition_add_seconds(out, u.info.latency_us);
        mk_buf_add_char(out, '\n');
    }
}

void metrics_upstreams_print(const struct mk_upstream_stats_table *table, struct mk_buf *out)
{
    struct upstream_view u;
    size_t first = 0;
    if (!metrics_upstreams_next(table, &first, &u))
        return;
    for (size_t i = 0; i < MK_LEN(families); i++)
        print_family(table, &families[i], out);
    print_latency(table, out);
}
