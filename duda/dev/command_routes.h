/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey routes`, `monkey doc` and `monkey openapi` write the routes of a service as a list, as an HTML page
 * and as an OpenAPI document. */
#ifndef DUDA_DEV_COMMAND_ROUTES_H
#define DUDA_DEV_COMMAND_ROUTES_H

#include <monkey/plugin.h>

extern const struct mk_command dev_command_routes;
extern const struct mk_command dev_command_doc;
extern const struct mk_command dev_command_openapi;

#endif
