/* SPDX-License-Identifier: Apache-2.0 */
/* The templates of a service. */
#ifndef DUDA_SERVICE_PAGES_H
#define DUDA_SERVICE_PAGES_H

#include <duda/page.h>

/* Compiles the folder `templates` of the service; *out is NULL if there is none. They live as long as the
 * configuration. False: something is wrong, which has been reported. */
bool duda_pages_load(struct mk_config *config, const struct duda_service *service,
                     const struct duda_templates **out);

#endif
