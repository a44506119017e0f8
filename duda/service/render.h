/* SPDX-License-Identifier: Apache-2.0 */
/* The templates of a service. */
#ifndef DUDA_SERVICE_RENDER_H
#define DUDA_SERVICE_RENDER_H

#include <duda/render.h>

/* Compiles the folder `templates` of the service; *out is NULL if the folder does not exist. Templates live
 * as long as the configuration. On failure, reports the error and returns false. */
bool duda_render_load_templates(struct mk_config *config, const struct duda_service *service,
                                const struct duda_templates **out);

#endif
