/* SPDX-License-Identifier: Apache-2.0 */
/* Request bodies and responses of an OpenAPI document. */
#ifndef DUDA_DEV_OPENAPI_BODY_H
#define DUDA_DEV_OPENAPI_BODY_H

#include "doc/json_schema.h"
#include "introspect.h"

/* Writes the member `requestBody`. The method is in lowercase. */
void dev_openapi_write_request_body(struct mk_json_writer *w, struct dev_json_schemas *named,
                                    const struct duda_route *line, const char *method);
/* Writes the member `responses`. */
void dev_openapi_write_responses(struct mk_json_writer *w, struct dev_json_schemas *named,
                                 const struct dev_route *r);
/* Writes the component `Problem`: problem details (RFC 9457), as duda_problem() and the bind functions send
 * them. */
void dev_openapi_write_problem_schema(struct mk_json_writer *w);

#endif
