/* SPDX-License-Identifier: Apache-2.0 */
/* Services that answer in the same hosts, in a configuration that does not say which of them comes first. */
#ifndef DUDA_SERVICE_OVERLAP_H
#define DUDA_SERVICE_OVERLAP_H

#include "service/table.h"

struct duda_overlap;

/* Adds the routes of a service that answers in the whole host to those of the others there, `*all`. False: two
 * services have the same route, which was reported, or memory is out. */
bool duda_overlap_add(struct mk_config *config, struct duda_overlap **all, const struct mk_host *host,
                      const struct duda_service *service, const struct duda_table *table);

#endif
