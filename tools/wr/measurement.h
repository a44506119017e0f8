/* SPDX-License-Identifier: Apache-2.0 */
/* One shot: what the client reported and what the server used meanwhile. A number below 0 is unknown. */
#ifndef WR_MEASUREMENT_H
#define WR_MEASUREMENT_H

#include "wr/result.h"

enum wr_bottleneck { WR_BOTTLENECK_NEITHER, WR_BOTTLENECK_SERVER, WR_BOTTLENECK_CLIENT };

struct wr_sample {
    double at_s, cores, pss_kb; /* since the shot began; processor seconds per second; the memory */
};

/* How much of the cores that it may use one side used. */
struct wr_load {
    double user_us, system_us;
    unsigned cores; /* that it may and can use: as many as it has busy threads for */
    double busy;    /* 0 to 1 */
    double busiest; /* the share of the time for which the busiest of its threads ran; 0 to 1 */
    double waited;  /* for a core that others had: 0 to 1 of the time of `cores` */
};

struct wr_measurement {
    struct wr_result reported;
    double wall_s; /* the client's whole life */
    struct wr_load server, client;
    double us_per_request;
    double pss_kb, peak_kb, hwm_kb;
    double voluntary, involuntary;
    double syscalls; /* for each request */
    enum wr_bottleneck bottleneck;
    struct wr_sample *samples;
    size_t n_samples;
};

/* Nothing is known. */
void wr_measurement_init(struct wr_measurement *s);
void wr_measurement_fini(struct wr_measurement *s);

/* Computes cores and busy from the times in `l` and `wall_s`. `allowed`: the cores that it may run on;
 * `threads`: its threads that did some work. The time used reveals threads that no sample saw. */
void wr_load_compute(struct wr_load *l, double wall_s, unsigned allowed, unsigned threads);
/* What needs all other numbers: us_per_request and the bottleneck. */
void wr_measurement_find_bottleneck(struct wr_measurement *s);
/* The middle of the samples' memory; below 0 when there is none. Changes nothing. */
double wr_measurement_median_pss(const struct wr_measurement *s);

const char *wr_bottleneck_word(enum wr_bottleneck b);

#endif
