/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes JSON (RFC 8259), with structs described by schemas. */
#ifndef DUDA_JSON_H
#define DUDA_JSON_H

#include <duda/value.h>
#include <monkey/json_reader.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Parses JSON into the struct at `out`. Optional members that the text lacks keep their values and presence
 * flags: set defaults, or zero them, beforehand. null clears them. Strings without escapes point into `text`,
 * and all other data is allocated in `memory`, so both must live as long as the struct is used.
 *
 * Returns 0; -EBADMSG: malformed (400); -EINVAL: does not match the schema (422); -EMSGSIZE: a limit is
 * exceeded (413); -ENOMEM. *errors describes the error, except for -ENOMEM. After an error the struct is
 * partly written. Thread-safe.
 *
 *     struct person person = {.age = 18};
 *     struct duda_validation_errors errors;
 *     int e = duda_json_read(text, &person_schema, &memory, NULL, &person, &errors);
 */
MK_API int duda_json_read(mk_str text, const struct duda_schema *schema, const struct mk_allocator *memory,
                          const struct mk_json_limits *limits, void *out,
                          struct duda_validation_errors *errors) MK_API_MUST_USE;
/**
 * Applies a JSON merge patch (RFC 7396) to the struct at `out`: members that the text lacks keep their
 * values, even if they are not optional, and null clears a member. Nested objects are merged in the same way;
 * lists and maps are replaced. A null for a member that cannot be empty is an error: see `.optional` of
 * struct duda_schema_field. Otherwise like duda_json_read().
 */
MK_API int duda_json_merge(mk_str text, const struct duda_schema *schema, const struct mk_allocator *memory,
                           const struct mk_json_limits *limits, void *out,
                           struct duda_validation_errors *errors) MK_API_MUST_USE;
/**
 * Parses a JSON array of structs. Sets *list to the structs, which are allocated from `memory`, and *n to
 * their number.
 *
 *     struct person *people;
 *     size_t n;
 *     struct duda_validation_errors errors;
 *     int e = duda_json_read_list(text, &person_schema, &memory, NULL, &people, &n, &errors);
 */
MK_API int duda_json_read_list(mk_str text, const struct duda_schema *schema,
                               const struct mk_allocator *memory, const struct mk_json_limits *limits,
                               void *list, size_t *n, struct duda_validation_errors *errors) MK_API_MUST_USE;
/**
 * Parses JSON without a schema. Integers that fit become integers, all other numbers doubles.
 *
 *     struct duda_value value, city;
 *     struct duda_validation_errors errors;
 *     int e = duda_json_read_value(text, &memory, NULL, &value, &errors);
 *     if (!e && duda_value_member(&value, MK_STR("city"), &city))
 *         duda_value_write(&out, &city);
 */
MK_API int duda_json_read_value(mk_str text, const struct mk_allocator *memory,
                                const struct mk_json_limits *limits, struct duda_value *out,
                                struct duda_validation_errors *errors) MK_API_MUST_USE;

/**
 * Writes a value as JSON. Strings that are not UTF-8 are interpreted as Latin-1, so that the output is
 * always valid. Absent optional members are omitted. Values nested deeper than MK_JSON_DEPTH_MAX become
 * null.
 *
 *     const struct duda_value value = duda_value_struct(&person_schema, &person);
 *     duda_json_write(&out, &value);
 */
MK_API void duda_json_write(struct mk_buf *out, const struct duda_value *value);

#ifdef __cplusplus
}
#endif

#endif
