/* SPDX-License-Identifier: Apache-2.0 */
/* Prints all statistics of the server's registry, whichever plugin counts them. */
#ifndef METRICS_STATISTICS_H
#define METRICS_STATISTICS_H

#include <monkey/json.h>
#include <monkey/stats.h>

/* Prints the families for Prometheus. `r` may be NULL. */
void metrics_statistics_print(const struct mk_stat_registry *r, struct mk_buf *out);
/* Prints, for each table with columns, its name and a list of objects. */
void metrics_statistics_print_json(const struct mk_stat_registry *r, struct mk_json_writer *w);

#endif
