/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/measurement.h"

#include <math.h>

#include "base/mem.h"
#include "wr/samples.h"

#define FULL     0.95 /* a program is at its limit above this share of its cores */
#define NOT_FULL 0.90 /* a program has spare capacity below this share */

void wr_measurement_init(struct wr_measurement *s)
{
    *s = (struct wr_measurement){
        .us_per_request = WR_UNKNOWN,
        .pss_kb = WR_UNKNOWN,
        .peak_kb = WR_UNKNOWN,
        .hwm_kb = WR_UNKNOWN,
        .voluntary = WR_UNKNOWN,
        .involuntary = WR_UNKNOWN,
        .syscalls = WR_UNKNOWN,
    };
    wr_result_init(&s->reported);
}

void wr_measurement_fini(struct wr_measurement *s)
{
    mk_mem_free(s->samples);
    wr_measurement_init(s);
}

void wr_load_compute(struct wr_load *l, double wall_s, unsigned allowed, unsigned threads)
{
    double used = wall_s > 0 ? (l->user_us + l->system_us) / 1e6 / wall_s : 0;
    /* A tenth of a core more than the known threads can use is within the measurement error; above that,
     * other threads must have run. */
    unsigned used_cores = used > 0.1 ? (unsigned)ceil(used - 0.1) : 1;
    unsigned usable = threads > used_cores ? threads : used_cores;
    l->cores = allowed && usable > allowed ? allowed : usable;
    l->busy = fmin(used / l->cores, 1);
}

void wr_measurement_find_bottleneck(struct wr_measurement *s)
{
    int64_t served = wr_result_requests_served(&s->reported);
    bool counted = s->server.user_us + s->server.system_us > 0;
    if (served > 0 && !counted) /* the process that served the requests was not sampled */
        s->server.user_us = s->server.system_us = WR_UNKNOWN;
    if (served > 0 && counted)
        s->us_per_request = (s->server.user_us + s->server.system_us) / (double)served;
    double client = s->client.busy;
    /* A client that busy-waits uses its whole core, but reports how long it really worked. */
    if (wr_is_known(s->reported.busy))
        client = fmin(client, s->reported.busy);
    /* A single busy thread limits the server, however many threads it has. */
    bool server_not_full = counted && s->server.busy < NOT_FULL && s->server.busiest < NOT_FULL;
    s->bottleneck = client >= FULL && server_not_full             ? WR_BOTTLENECK_CLIENT
                    : s->server.busy >= FULL && client < NOT_FULL ? WR_BOTTLENECK_SERVER
                                                                  : WR_BOTTLENECK_NEITHER;
}

double wr_measurement_median_pss(const struct wr_measurement *s)
{
    struct wr_samples spread;
    wr_samples_init(&spread);
    for (size_t i = 0; i < s->n_samples; i++)
        wr_samples_add(&spread, s->samples[i].pss_kb);
    double median = wr_samples_range(&spread).median;
    wr_samples_fini(&spread);
    return median;
}

const char *wr_bottleneck_to_text(enum wr_bottleneck b)
{
    return b == WR_BOTTLENECK_CLIENT ? "client" : b == WR_BOTTLENECK_SERVER ? "server" : "neither";
}
