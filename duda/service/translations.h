/* SPDX-License-Identifier: Apache-2.0 */
/* The translations of a service: its messages in several languages. */
#ifndef DUDA_SERVICE_TRANSLATIONS_H
#define DUDA_SERVICE_TRANSLATIONS_H

#include "service/duda_ctx.h"

/* Reads the folder `translations`; if there is none, *out is NULL. Translations live as long as the
 * configuration. */
bool duda_translations_load(struct mk_config *config, const struct duda_service *service,
                            const struct duda_translations **out);

#endif
