/* SPDX-License-Identifier: Apache-2.0 */
/* What Duda has in each worker. */
#ifndef DUDA_SERVICE_HOME_H
#define DUDA_SERVICE_HOME_H

#include "service/duda_type.h"

/* Once, before all others: the plugin that Duda is. */
void duda_home_set(const struct mk_plugin *plugin);

struct duda_home *duda_home(struct mk_worker *worker);

int duda_home_start(struct mk_worker *worker);
void duda_home_stop(struct mk_worker *worker);

#endif
