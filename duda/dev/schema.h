/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and types of parameters as JSON Schema (2020-12), as OpenAPI 3.1 takes it. */
#ifndef DUDA_DEV_SCHEMA_H
#define DUDA_DEV_SCHEMA_H

#include <duda/shape.h>

/* Of a type in a pattern, such as "int"; empty: any text. */
const char *dev_schema_of_type(mk_str type);
/* Shapes that hold themselves end as "any value" some levels deep. */
void dev_schema_write(struct mk_buf *out, const struct duda_shape *shape, bool is_list);
/* Of one member, without what says whether it is needed. */
void dev_schema_write_member(struct mk_buf *out, const struct duda_member *m);

#endif
