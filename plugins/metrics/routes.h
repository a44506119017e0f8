/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of services, as these count them in shared memory. */
#ifndef METRICS_ROUTES_H
#define METRICS_ROUTES_H

#include <monkey/buf.h>
#include <monkey/routes.h>

/* For Prometheus; nothing if there are none. */
void metrics_routes_print(const struct mk_routes_board *board, struct mk_buf *out);
/* A list of objects. */
void metrics_routes_print_json(const struct mk_routes_board *board, struct mk_buf *out);

#endif
