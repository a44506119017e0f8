/* SPDX-License-Identifier: Apache-2.0 */
#include "server/certificate_monitor.h"

#include "base/log.h"
#include "os/crash_probe.h"
#include "server/certificate_entries.h"
#include "setup/certificate_list.h"

enum { POLL_MS = 3000, REREAD_MS = 3600 * 1000, READ_S = 300 };

/* ---- The process ---- */

static void read_certificates(void *ctx)
{
    const struct mk_certificate_monitor *m = ctx;
    const struct mk_config_generation *g = m->generation;
    struct mk_buf out = mk_certificate_list_begin(g->certificate_list);
    struct mk_certificate_entries all;
    struct mk_arena arena;
    bool ignored;
    size_t n_omitted = 0;
    mk_arena_init(&arena, NULL);
    const struct mk_tls_module *tls = mk_tls_load(NULL);
    const struct mk_tls_inventory_settings settings = {.json = true,
                                                       .is_array = true,
                                                       .omits_files = true,
                                                       .max_len = MK_CERTIFICATE_LIST_MAX - 1,
                                                       .n_omitted = &n_omitted,
                                                       .statistics = g->shared->statistics,
                                                       .table = m->table};
    if (tls && mk_certificate_entries_collect(g, &arena, &all) &&
        !tls->inventory(all.at, all.n, &settings, &out, &ignored))
        mk_certificate_list_publish(g->certificate_list, out.len);
    if (n_omitted)
        mk_log_warn(
            m->log,
            "the list of certificates for plugins omits the last %zu to expire: it is limited to %d MB",
            n_omitted, MK_CERTIFICATE_LIST_MAX >> 20);
}

static void start_reading(struct mk_certificate_monitor *m)
{
    pid_t pid = mk_crash_probe_start(read_certificates, m, READ_S);
    m->pid = pid > 0 ? pid : 0;
    m->read_ms = m->loop->now_ms;
}

/* ---- The master ---- */

static void on_poll_timer(struct mk_timer *t)
{
    struct mk_certificate_monitor *m = MK_CONTAINER(t, struct mk_certificate_monitor, timer);
    bool is_due = !m->read_ms || m->loop->now_ms - m->read_ms >= REREAD_MS;
    mk_loop_set_timer(m->loop, t, POLL_MS);
    if (!m->pid && (mk_file_watch_poll(m->folders) || is_due))
        start_reading(m);
}

/* Watches FOLDER/renewal and FOLDER/failures for the certificate FOLDER/certificates/NAME.pem: their files are replaced
 * by renaming. */
static void watch_state(struct mk_certificate_monitor *m, struct mk_arena *arena, const char *certificate)
{
    static const char *const names[] = {"renewal", "failures"};
    mk_str path = mk_str_from_c(certificate ? certificate : "");
    path = mk_str_first(path, mk_str_find_last(path, '/'));
    for (size_t i = 0; i < MK_LEN(names); i++) {
        mk_str folder = mk_arena_printf(arena, "%.*s/../%s", MK_STR_ARG(path), names[i]);
        if (folder.p)
            (void)!mk_file_watch_add(&m->folders, arena, folder.p);
    }
}

void mk_certificate_monitor_set_config(struct mk_certificate_monitor *m, struct mk_config_generation *g)
{
    mk_timer_stop(&m->timer);
    m->generation = g;
    m->folders = NULL;
    if (!g->certificate_list)
        return;
    for (const struct mk_vhost_config *s = g->sites; s; s = s->next)
        for (const struct mk_plugin_certificate *one = s->plugin_certificates; one; one = one->next)
            if (one->pair.from_plugin)
                watch_state(m, &g->arena, one->pair.certificate);
    for (const struct mk_vhost_config *s = g->sites; s; s = s->next)
        if (s->on_demand)
            watch_state(m, &g->arena, mk_arena_printf(&g->arena, "%s/", s->on_demand->folder).p);
    struct mk_stat_registry *r = g->tls ? mk_shared_state_get_statistics(g->shared) : NULL;
    m->table = r ? g->tls->inventory_table(r) : 0;
    m->read_ms = 0;
    mk_loop_set_timer(m->loop, &m->timer, 1);
}

void mk_certificate_monitor_init(struct mk_certificate_monitor *m, struct mk_loop *loop, struct mk_log *log)
{
    m->loop = loop;
    m->log = log;
    mk_timer_init(&m->timer, on_poll_timer);
}

void mk_certificate_monitor_reap(struct mk_certificate_monitor *m, pid_t pid)
{
    if (pid != m->pid)
        return;
    m->pid = 0;
    if (!m->read_ms) /* it has read the certificates of the previous configuration */
        mk_loop_set_timer(m->loop, &m->timer, 1);
}

void mk_certificate_monitor_stop(struct mk_certificate_monitor *m)
{
    mk_timer_stop(&m->timer);
}
