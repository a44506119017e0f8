/* SPDX-License-Identifier: Apache-2.0 */
/* The data of one shot: the client's results and the server's resource usage. Negative numbers are
 * unknown. */
#ifndef WR_MEASUREMENT_H
#define WR_MEASUREMENT_H

#include "wr/result.h"

enum wr_bottleneck { WR_BOTTLENECK_NEITHER, WR_BOTTLENECK_SERVER, WR_BOTTLENECK_CLIENT };

struct wr_sample {
    double at_s, cores, pss_kb; /* time since the start of the shot; CPU seconds per second; memory */
};

/* CPU usage of one side, relative to the cores available to it. */
struct wr_load {
    double user_us, system_us;
    unsigned cores; /* usable cores: limited by affinity and by the number of active threads */
    double busy;    /* share of `cores`, 0 to 1 */
    double busiest; /* CPU share of the busiest thread, 0 to 1 */
    double waited;  /* run-queue wait, as a share of `cores`, 0 to 1 */
};

struct wr_measurement {
    struct wr_result reported;
    double wall_s; /* time from the start to the exit of the client */
    struct wr_load server, client;
    double us_per_request;
    double pss_kb, peak_kb, hwm_kb;
    double voluntary, involuntary;
    double syscalls; /* per request */
    enum wr_bottleneck bottleneck;
    struct wr_sample *samples;
    size_t n_samples;
};

/* Sets all numbers to unknown. */
void wr_measurement_init(struct wr_measurement *s);
void wr_measurement_fini(struct wr_measurement *s);

/* Computes `cores` and `busy` from the CPU time in `l` and `wall_s`. `allowed`: cores in the affinity mask;
 * `threads`: number of active threads. More CPU time than these threads can use reveals threads that no
 * sample saw. */
void wr_load_compute(struct wr_load *l, double wall_s, unsigned allowed, unsigned threads);
/* Computes us_per_request and the bottleneck from the other numbers. */
void wr_measurement_find_bottleneck(struct wr_measurement *s);
/* Returns the median memory of the samples, or WR_UNKNOWN. */
double wr_measurement_median_pss(const struct wr_measurement *s);

const char *wr_bottleneck_to_text(enum wr_bottleneck b);

#endif
