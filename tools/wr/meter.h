/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what a server and a client use during one shot. */
#ifndef WR_METER_H
#define WR_METER_H

#include "wr/child.h"
#include "wr/measurement.h"
#include "wr/process_tree.h"

struct wr_meter {
    struct wr_process_tree *server;
    struct wr_process client;
    bool has_client;
    uint64_t started_us, sampled_us,
        full_sample_us; /* start, last sample, and due time of the next sample of threads and memory */
    double client_s;    /* elapsed time at the last sample of the client's threads */
    struct wr_cpu at_start, last, processes_at_start;
    struct wr_switches switches;
    double pss_kb, peak_kb, hwm_kb;
    struct wr_sample *samples;
    size_t n_samples, cap_samples;
    double cores; /* CPU usage in the last sample */
};

/* Call this right before the client starts. Returns false if out of memory. */
bool wr_meter_start(struct wr_meter *m, struct wr_process_tree *server) MK_MUST_USE;
void wr_meter_watch_client(struct wr_meter *m, pid_t pid);
/* Takes one sample. Threads and memory are expensive to read and are skipped while they would take more than
 * 2 % of the time. Returns false if out of memory. */
bool wr_meter_sample(struct wr_meter *m) MK_MUST_USE;
/* Call this right after the client exits: fills all but the client's own results. Without any sample, memory
 * is unknown. Returns false if out of memory. */
bool wr_meter_stop(struct wr_meter *m, const struct wr_child *client, struct wr_measurement *out) MK_MUST_USE;
void wr_meter_fini(struct wr_meter *m);

#endif
