/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the definitions of topics when services are loaded. */
#ifndef DUDA_SERVICE_TOPIC_LOAD_H
#define DUDA_SERVICE_TOPIC_LOAD_H

#include <duda/topic.h>

#include "service/worker_ctx.h"

/* Checks the topics of the last service in `duda`, against each other and against those of other services of
 * its scope. Returns false after reporting an error. */
bool duda_topics_load(struct mk_config *config, struct duda_plugin_config *duda,
                      const struct duda_service *service);

#endif
