/* SPDX-License-Identifier: Apache-2.0 */
/* What plugins count of their calls to stores, databases and other servers. */
#ifndef METRICS_METERS_H
#define METRICS_METERS_H

#include <monkey/buf.h>
#include <monkey/meter.h>

/* For Prometheus; nothing if there are none. */
void metrics_meters_print(const struct mk_meter_board *board, struct mk_buf *out);

#endif
