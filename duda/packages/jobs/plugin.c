/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: the section [JOBS], and the job types that a worker runs. In a worker, it starts after the
 * stores and services, and cancels its jobs before they stop. */
#include <errno.h>
#include <monkey/plugin.h>

#include "common/package.h"
#include "jobs_worker.h"

static const struct mk_conf_key keys[] = {
    {.name = "Store",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct jobs_settings, store),
     .min = 1,
     .max = 63,
     .help = "Name of the [KV] or [REDIS] that stores the jobs; default: `main`."},
    {.name = "Lease",
     .type = MK_CONF_TIME,
     MK_CONF_AT(struct jobs_settings, lease_ms),
     .default_value = "30s",
     .min = 300,
     .max = 3600000,
     .help = "Lease time: another worker runs a job again if its worker has not renewed the lease for this "
             "long."},
    {.name = "RunJobs",
     .type = MK_CONF_BOOL,
     MK_CONF_AT(struct jobs_settings, runs),
     .default_value = "on",
     .help = "Run jobs. With `off`, this machine only enqueues them, and other machines run them."},
};

PACKAGE_TABLE(jobs, "JOBS", struct jobs_settings, "Background jobs of Duda services.");

static int load_plugin(struct mk_config *config, void **data)
{
    jobs_worker_set_plugin(&MK_PLUGIN_OF(duda_jobs));
    struct jobs_settings *s = mk_config_settings(config, &table);
    if (s)
        s->meter = mk_meter_get(config, MK_STR("jobs"), s->store.len ? s->store : MK_STR("main"));
    *data = s;
    return s ? 0 : -ENOMEM;
}

/* Called when the packages have registered their stores: checks that `Store` names one of them. If `Store` is
 * not set, the store "main" may be missing, which the worker logs. */
static int check_store_of_host(struct mk_config *config, struct mk_vhost *h, void *data, void **host_data)
{
    struct jobs_settings *s = data;
    (void)h;
    if (!s->store.len)
        s->store = MK_STR("main");
    else if (!s->is_checked)
        duda_store_require(config, s, "Store", s->store);
    s->is_checked = true;
    *host_data = data;
    return 0;
}

static void stop_jobs_in_worker(struct mk_worker *w, void *data)
{
    struct jobs_worker *work = mk_worker_data(w, &MK_PLUGIN_OF(duda_jobs));
    (void)data;
    while (work && work->runners) {
        struct jobs_runner *r = work->runners;
        work->runners = r->next;
        jobs_runner_cancel(r);
        mk_mem_free(r->slots);
        mk_mem_free(r);
    }
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_jobs), NULL);
    mk_mem_free(work);
}

static int start_jobs_in_worker(struct mk_worker *w, void *data)
{
    struct jobs_worker *work = jobs_worker_get(w);
    int e = work ? 0 : -ENOMEM;
    if (work) {
        work->settings = data;
        work->meter = mk_worker_cells(w, work->settings->meter);
    }
    for (struct jobs_runner *r = work ? work->runners : NULL; r && !e && work->settings->runs; r = r->next)
        e = jobs_runner_start(r);
    if (e)
        stop_jobs_in_worker(w, data);
    return e;
}

static void drain_jobs_in_worker(struct mk_worker *w, void *data)
{
    struct jobs_worker *work = mk_worker_data(w, &MK_PLUGIN_OF(duda_jobs));
    (void)data;
    if (work)
        work->is_draining = true;
    for (struct jobs_runner *r = work ? work->runners : NULL; r; r = r->next)
        jobs_runner_drain(r);
}

/* Jobs run functions of services, whose DUDA_STOP() may release what these use. */
static void cancel_jobs_in_worker(struct mk_worker *w, void *data)
{
    struct jobs_worker *work = mk_worker_data(w, &MK_PLUGIN_OF(duda_jobs));
    (void)data;
    for (struct jobs_runner *r = work ? work->runners : NULL; r; r = r->next)
        jobs_runner_cancel(r);
}

static void on_job_notification(struct mk_worker *w, mk_str message, void *data)
{
    (void)data;
    jobs_worker_on_notify(w, message);
}

PACKAGE_PLUGIN(jobs, "Background jobs for Duda services: each runs at least once, later, or on a schedule.",
               .sections = sections, .priority = MK_PRIORITY_LATE, .load = load_plugin,
               .host = check_store_of_host, .worker_start = start_jobs_in_worker,
               .worker_stop = stop_jobs_in_worker, .worker_drain = drain_jobs_in_worker,
               .worker_cancel = cancel_jobs_in_worker, .on_message = on_job_notification,
               .needs = PACKAGE_NEEDS("duda", "duda-store"));
