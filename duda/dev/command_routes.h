/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey routes` and `monkey doc`: what a service answers, as a list, as a page, as OpenAPI. */
#ifndef DUDA_DEV_COMMAND_ROUTES_H
#define DUDA_DEV_COMMAND_ROUTES_H

#include <monkey/plugin.h>

/* Where `monkey run` shows the page. */

extern const struct mk_command dev_command_routes;
extern const struct mk_command dev_command_doc;

#endif
