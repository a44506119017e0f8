/* SPDX-License-Identifier: Apache-2.0 */
/* Writes schemas and parameter types as JSON Schema (2020-12), for OpenAPI 3.1. */
#ifndef DUDA_DEV_JSON_SCHEMA_H
#define DUDA_DEV_JSON_SCHEMA_H

#include <duda/schema.h>
#include <monkey/json.h>

/* Writes the schema of a parameter type, such as "int"; an empty type means any string. */
void dev_json_schema_write_param_type(struct mk_json_writer *w, mk_str type);
/* Named schemas, the targets of references. */
enum { DEV_JSON_SCHEMAS_MAX = 256 };
struct dev_json_schemas {
    const struct duda_schema *at[DEV_JSON_SCHEMAS_MAX];
    bool is_in_request[DEV_JSON_SCHEMAS_MAX]; /* JSON request bodies contain the schema */
    size_t n;
};

/* Writes a schema, or a reference to it. In recursive schemas without a name, "any value" replaces the deeper
 * levels. */
void dev_json_schema_write(struct mk_json_writer *w, struct dev_json_schemas *named,
                           const struct duda_schema *schema, bool is_list);
/* Writes the schema of a JSON request body, in which null clears an optional member. JSON responses omit these
 * members, and forms and queries have no null. */
void dev_json_schema_write_request(struct mk_json_writer *w, struct dev_json_schemas *named,
                                   const struct duda_schema *schema, bool is_list);
/* Writes the schema of a merge patch (RFC 7396) of the struct: no member is required, and null clears an
 * optional one. */
void dev_json_schema_write_patch(struct mk_json_writer *w, struct dev_json_schemas *named,
                                 const struct duda_schema *schema);
/* Writes the schema of a multipart form: the fields of `form` (NULL: none), and files named by words such as
 * "photo", "photo?" (optional) and "photos[]" (a list). */
void dev_json_schema_write_multipart(struct mk_json_writer *w, struct dev_json_schemas *named,
                                     const struct duda_schema *form, const char *files);
/* Writes the referenced schemas as members of an object. */
void dev_json_schema_write_components(struct mk_json_writer *w, struct dev_json_schemas *named);
/* Writes the schema of one field, which does not include whether the field is required. */
void dev_json_schema_write_field(struct mk_json_writer *w, const struct duda_schema_field *m);

#endif
