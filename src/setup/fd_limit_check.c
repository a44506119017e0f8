/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/fd_limit_check.h"

#include "conf/table.h"
#include "os/fd.h"
#include "setup/keys.h"

enum {
    FIXED = 16, /* descriptors of each process: loop, timers, signals, pid file, reserve */
    /* Descriptors of the master for each worker: control channel and message channel, and those of the
     * worker's successor during a reload. */
    PER_WORKER = 4,
    CONNECTIONS = 32, /* minimum number of connections per worker that makes serving worthwhile */
};

static struct mk_conf_source_pos server_key_pos(const struct mk_config_generation *g, const char *key)
{
    const struct mk_conf_section *section = mk_conf_tree_find(&g->tree, MK_STR("SERVER"));
    const struct mk_conf_entry *e = mk_conf_table_find_entry(section, mk_str_from_c(key));
    struct mk_conf_source_pos file = {.file =
                                          g->sites ? g->sites->section->at.file : MK_STR("configuration")};
    return e ? mk_conf_tree_value_pos(e, e->value) : section ? section->at : file;
}

static void hint_raise_limit(struct mk_conf_report *report)
{
    mk_conf_report_hint(report, "raise the limit: LimitNOFILE= in the unit, `ulimit -Hn` in a shell");
}

static void check_master_fds(const struct mk_config_generation *g, uint64_t limit, uint64_t open,
                             struct mk_conf_report *report)
{
    uint64_t expected = open + FIXED + g->server.workers * (g->listens.n + PER_WORKER);
    struct mk_conf_source_pos at = server_key_pos(g, "FDLimit");
    if (expected <= limit)
        return;
    mk_conf_report_warn(report, &at,
                        "%zu hosts need about %llu file descriptors in the master, which may have %llu",
                        g->n_sites, (unsigned long long)expected, (unsigned long long)limit);
    hint_raise_limit(report);
}

static void check_worker_fds(const struct mk_config_generation *g, uint64_t limit, uint64_t open,
                             struct mk_conf_report *report)
{
    uint64_t fixed = open + FIXED + g->listens.n, most = g->server.max_connections;
    uint64_t each = most ? (most + g->server.workers - 1) / g->server.workers : CONNECTIONS;
    struct mk_conf_source_pos at = server_key_pos(g, g->server.fd_limit ? "FDLimit" : "MaxConnections");
    if (g->server.fd_limit)
        limit = g->server.fd_limit;
    if (fixed + each <= limit)
        return;
    mk_conf_report_warn(
        report, &at,
        "a worker may have %llu file descriptors, of which %llu remain for connections: %llu are %s",
        (unsigned long long)limit, (unsigned long long)(limit > fixed ? limit - fixed : 0),
        (unsigned long long)each, most ? "its share of MaxConnections" : "too few to serve");
    hint_raise_limit(report);
}

void mk_fd_limit_check(const struct mk_config_generation *g, struct mk_conf_report *report)
{
    uint64_t limit = 0;
    if (g->embedding || g->lacks_descriptors || mk_fd_set_limit(0, &limit))
        return;
    uint64_t open = mk_fd_count_open();
    check_master_fds(g, limit, open, report);
    check_worker_fds(g, limit, open, report);
}
