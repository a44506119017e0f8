/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and types of parameters as JSON Schema (2020-12), as OpenAPI 3.1 takes it. */
#ifndef DUDA_DEV_JSON_SCHEMA_H
#define DUDA_DEV_JSON_SCHEMA_H

#include <duda/schema.h>

/* Of a type in a pattern, such as "int"; empty: any text. */
const char *dev_json_schema_of_param_type(mk_str type);
/* The shapes that have a name: references lead to them. */
enum { DEV_JSON_SCHEMAS_MAX = 256 };
struct dev_json_schemas {
    const struct duda_schema *at[DEV_JSON_SCHEMAS_MAX];
    size_t n;
};

/* Shapes without a name that hold themselves end as "any value" some levels deep. */
void dev_json_schema_write(struct mk_buf *out, struct dev_json_schemas *named,
                           const struct duda_schema *shape, bool is_list);
/* Those that were referred to, as members of an object: a comma, the name, the schema. */
void dev_json_schema_write_components(struct mk_buf *out, struct dev_json_schemas *named);
/* Of one member, without what says whether it is needed. */
void dev_json_schema_write_field(struct mk_buf *out, const struct duda_schema_field *m);

#endif
