/* SPDX-License-Identifier: Apache-2.0 */
/* What a server and a client use during one shot. */
#ifndef WR_METER_H
#define WR_METER_H

#include "wr/child.h"
#include "wr/measurement.h"
#include "wr/process_tree.h"

struct wr_meter {
    struct wr_process_tree *server;
    struct wr_process client;
    bool has_client;
    uint64_t started_us, sampled_us, dear_us; /* when, when last, and when the next dear look is due */
    double client_s; /* how long the client was watched when its threads were last seen */
    struct wr_cpu at_start, last, processes_at_start;
    struct wr_switches switches;
    double pss_kb, peak_kb, hwm_kb;
    struct wr_sample *samples;
    size_t n_samples, cap_samples;
    double cores; /* of the last sample */
};

/* Right before the client starts. False when memory is out. */
bool wr_meter_start(struct wr_meter *m, struct wr_process_tree *server) MK_MUST_USE;
void wr_meter_watch_client(struct wr_meter *m, pid_t pid);
/* One look. Those at threads and memory, which cost, are left out when they would take more than a fiftieth
 * of the time. False when memory is out. */
bool wr_meter_sample(struct wr_meter *m) MK_MUST_USE;
/* Right after the client ended: all but what it reported. Without a sample the memory is not known. False
 * when memory is out. */
bool wr_meter_stop(struct wr_meter *m, const struct wr_child *client, struct wr_measurement *out) MK_MUST_USE;
void wr_meter_fini(struct wr_meter *m);

#endif
