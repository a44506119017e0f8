/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey routes` and `monkey doc`: show the routes of a service as a list, an HTML page or OpenAPI. */
#ifndef DUDA_DEV_COMMAND_ROUTES_H
#define DUDA_DEV_COMMAND_ROUTES_H

#include <monkey/plugin.h>

/* The path of the page under `monkey run`. */

extern const struct mk_command dev_command_routes;
extern const struct mk_command dev_command_doc;

#endif
