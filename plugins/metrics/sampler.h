/* SPDX-License-Identifier: Apache-2.0 */
/* Adds a sample to the history once a second. Only the first worker has a sampler. During a reload, the old
 * and the new configuration may both have one, and the history takes the first sample of each second. */
#ifndef METRICS_SAMPLER_H
#define METRICS_SAMPLER_H

#include "settings.h"

struct sampler;

/* Returns NULL if out of memory. */
struct sampler *metrics_sampler_new(struct mk_worker *w, const struct metrics *metrics,
                                    const struct process_reporter *reporter);
/* Accepts NULL. */
void metrics_sampler_free(struct sampler *s);

#endif
