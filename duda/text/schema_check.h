/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the schemas of a service when it is loaded, so that a mistake in a schema is an error at startup. */
#ifndef DUDA_TEXT_SCHEMA_CHECK_H
#define DUDA_TEXT_SCHEMA_CHECK_H

#include <duda/schema.h>

/* Checks the schema (may be NULL) and those of its members. Returns false, and writes the error to `message`,
 * if a rule has no effect on the type of its member, or cannot be satisfied. */
bool duda_schema_check(const struct duda_schema *schema, struct mk_buf *message);

#endif
