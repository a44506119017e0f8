/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/meter.h"

#include <math.h>

#include "base/clock.h"
#include "base/mem.h"

enum { FULL_SAMPLE_SHARE = 50 };
#define ACTIVE 0.05 /* threads that run for a smaller share of the time do not count as active */
#define SEEN   0.90 /* share of the cgroup's CPU time that the sampled processes must explain */

static double seconds_from_us(uint64_t us)
{
    return (double)us / 1e6;
}

/* Finds new processes and threads, and reads their memory. */
static bool sample_threads_and_memory(struct wr_meter *m)
{
    uint64_t began = mk_clock_us(), kb;
    struct wr_cpu processes;
    if (!wr_process_tree_add_descendants(m->server))
        return false;
    if (m->server->cgroup)
        wr_process_tree_read_process_cpu(m->server, &processes); /* removes exited processes */
    if (!wr_process_tree_read_threads(m->server))
        return false;
    wr_process_tree_read_memory(m->server);
    m->pss_kb = wr_process_tree_pss_kb(m->server, &kb) ? (double)kb : WR_UNKNOWN;
    m->hwm_kb = fmax(m->hwm_kb, (double)wr_process_tree_hwm_kb(m->server));
    if (m->has_client) {
        wr_process_read_cpu(&m->client);
        if (!m->client.is_gone && !m->client.is_dead) {
            m->client_s = seconds_from_us(mk_clock_us() - m->started_us);
            if (!wr_process_read_threads(&m->client))
                return false;
        }
    }
    uint64_t now = mk_clock_us();
    m->full_sample_us = now + FULL_SAMPLE_SHARE * (now - began);
    return true;
}

bool wr_meter_start(struct wr_meter *m, struct wr_process_tree *server)
{
    *m = (struct wr_meter){.server = server, .pss_kb = WR_UNKNOWN, .peak_kb = WR_UNKNOWN};
    if (!sample_threads_and_memory(m))
        return false;
    m->full_sample_us = 0; /* the first sample under load includes memory */
    m->hwm_kb = 0;
    wr_process_tree_start_interval(server);
    m->switches = wr_process_tree_context_switches(server);
    wr_process_tree_read_process_cpu(server, &m->processes_at_start);
    wr_process_tree_read_cpu(server, &m->at_start);
    m->last = m->at_start;
    m->started_us = m->sampled_us = mk_clock_us();
    return true;
}

void wr_meter_watch_client(struct wr_meter *m, pid_t pid)
{
    m->has_client = wr_process_init(&m->client, pid);
}

static bool append_sample(struct wr_meter *m, uint64_t now)
{
    if (m->n_samples == m->cap_samples) {
        size_t cap = m->cap_samples ? 2 * m->cap_samples : 64;
        struct wr_sample *more = mk_mem_realloc(m->samples, cap * sizeof *more);
        if (!more)
            return false;
        m->samples = more;
        m->cap_samples = cap;
    }
    m->samples[m->n_samples++] =
        (struct wr_sample){seconds_from_us(now - m->started_us), m->cores, m->pss_kb};
    return true;
}

bool wr_meter_sample(struct wr_meter *m)
{
    uint64_t now = mk_clock_us();
    struct wr_cpu cpu;
    if (now <= m->sampled_us)
        return true;
    wr_process_tree_read_cpu(m->server, &cpu);
    struct wr_cpu used = wr_cpu_diff(&cpu, &m->last);
    m->cores = (double)used.total / 1000 / (double)(now - m->sampled_us);
    m->last = cpu;
    m->sampled_us = now;
    if (now >= m->full_sample_us && !sample_threads_and_memory(m))
        return false;
    m->peak_kb = fmax(m->peak_kb, m->pss_kb);
    return append_sample(m, now);
}

static void measure_server(struct wr_meter *m, struct wr_measurement *out)
{
    cpu_set_t cores;
    uint64_t waited, longest;
    unsigned active =
        wr_process_tree_count_threads(m->server, (uint64_t)(out->wall_s * ACTIVE * 1e9), &waited, &longest);
    wr_process_tree_affinity(m->server, &cores);
    wr_load_compute(&out->server, out->wall_s, (unsigned)CPU_COUNT(&cores), active);
    out->server.busiest = fmin((double)longest / 1e9 / out->wall_s, 1);
    out->server.waited = fmin((double)waited / 1e9 / out->wall_s / out->server.cores, 1);
}

static void measure_client(struct wr_meter *m, const struct wr_child *client, struct wr_measurement *out)
{
    const struct rusage *u = &client->usage;
    cpu_set_t cores;
    unsigned active = 0;
    double waited_s = 0;
    for (size_t i = 0; i < m->client.n_threads; i++) {
        active += (double)m->client.threads[i].run.ran / 1e9 >= m->client_s * ACTIVE;
        waited_s += (double)m->client.threads[i].run.waited / 1e9;
    }
    out->client.user_us = (double)u->ru_utime.tv_sec * 1e6 + (double)u->ru_utime.tv_usec;
    out->client.system_us = (double)u->ru_stime.tv_sec * 1e6 + (double)u->ru_stime.tv_usec;
    /* the client inherits wr's affinity mask */
    unsigned allowed = sched_getaffinity(0, sizeof cores, &cores) == 0 ? (unsigned)CPU_COUNT(&cores) : 0;
    wr_load_compute(&out->client, out->wall_s, allowed, active);
    out->client.waited = m->client_s > 0 ? fmin(waited_s / m->client_s / out->client.cores, 1) : 0;
}

/* Returns whether the samples account for nearly all CPU time of the cgroup. The cgroup includes the CPU time
 * of processes that no sample saw, but not their context switches. */
static bool samples_cover_cgroup_cpu(struct wr_meter *m, const struct wr_cpu *used)
{
    struct wr_cpu now;
    if (!m->server->cgroup)
        return true;
    wr_process_tree_read_process_cpu(m->server, &now);
    return (double)wr_cpu_diff(&now, &m->processes_at_start).total >= SEEN * (double)used->total;
}

static double saturating_difference(uint64_t now, uint64_t before)
{
    return now > before ? (double)(now - before) : 0;
}

bool wr_meter_stop(struct wr_meter *m, const struct wr_child *client, struct wr_measurement *out)
{
    struct wr_cpu cpu;
    wr_process_tree_read_cpu(m->server, &cpu);
    struct wr_cpu used = wr_cpu_diff(&cpu, &m->at_start);
    if (!wr_process_tree_add_descendants(m->server))
        return false;
    if (!m->server->cgroup) { /* `used` lacks the time of processes started after the last sample */
        struct wr_cpu more;
        wr_process_tree_sum_cpu_of_new(m->server, &more);
        wr_cpu_add(&used, &more);
    }
    if (!sample_threads_and_memory(m)) /* the memory after the load is not recorded as a sample */
        return false;
    out->wall_s = seconds_from_us(client->ended_us - client->started_us);
    wr_cpu_split(&used, &out->server.user_us, &out->server.system_us);
    measure_server(m, out);
    measure_client(m, client, out);
    if (samples_cover_cgroup_cpu(m, &used)) {
        struct wr_switches s = wr_process_tree_context_switches(m->server);
        out->voluntary = saturating_difference(s.voluntary, m->switches.voluntary);
        out->involuntary = saturating_difference(s.involuntary, m->switches.involuntary);
    }
    out->samples = m->samples;
    out->n_samples = m->n_samples;
    m->samples = NULL;
    out->pss_kb = wr_measurement_median_pss(out);
    out->peak_kb = m->peak_kb;
    out->hwm_kb = m->hwm_kb > 0 ? m->hwm_kb : WR_UNKNOWN;
    return true;
}

void wr_meter_fini(struct wr_meter *m)
{
    if (m->has_client)
        wr_process_fini(&m->client);
    mk_mem_free(m->samples);
    *m = (struct wr_meter){0};
}
