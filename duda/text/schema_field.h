/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of schemas: which values they accept, and how they are stored. Independent of JSON and forms. */
#ifndef DUDA_TEXT_SCHEMA_FIELD_H
#define DUDA_TEXT_SCHEMA_FIELD_H

#include <duda/value.h>

/* An integer as written: magnitude and sign. */
struct duda_integer {
    uint64_t amount;
    bool is_negative;
};

/* Each function stores a value at `at`, the address of the element or field. It returns false if the rules of
 * the field forbid the value. */
bool duda_schema_field_put_integer(const struct duda_schema_field *m, void *at, struct duda_integer n);
bool duda_schema_field_put_double(const struct duda_schema_field *m, void *at, double n);
bool duda_schema_field_put_string(const struct duda_schema_field *m, void *at, mk_str text);
bool duda_schema_field_put_enum(const struct duda_schema_field *m, void *at, mk_str word);

/* Sets the presence flag of the field in the struct at `base`, if it has one. */
void duda_schema_field_set_present(const struct duda_schema_field *m, void *base, bool has);
/* Returns whether the field is present in the struct. */
bool duda_schema_field_is_present(const struct duda_schema_field *m, const void *base);
/* Returns the field of the struct at `base`, as a value. */
struct duda_value duda_schema_field_value(const struct duda_schema_field *m, const void *base);
/* Returns the value of one list element, or of the field itself if it is not a list. */
struct duda_value duda_schema_field_value_at(const struct duda_schema_field *m, const void *at);
/* Returns the value of one list element of an integer field, or of the field itself if it is not a list. */
struct duda_integer duda_schema_field_integer(const struct duda_schema_field *m, const void *at);
/* Returns the index of the field with that name, or MK_STR_NONE. */
size_t duda_schema_field_find(const struct duda_schema *schema, mk_str name);
/* Returns whether the list may have this many elements. */
bool duda_schema_field_allows_count(const struct duda_schema_field *m, size_t n);
/* Describes what an element must be, "an integer from 0 to 150", or, with `list`, the list: "a list of at
 * most 5 elements". */
void duda_schema_field_describe(struct mk_buf *out, const struct duda_schema_field *m, bool list);

/* Parses -?[0-9]+; false if the text is malformed or the number does not fit. */
bool duda_integer_parse(mk_str s, struct duda_integer *out);

/* The location of a value, for validation errors: a chain from the innermost field outwards. */
struct duda_field_path {
    const struct duda_field_path *up;
    const char *name; /* NULL: a list element */
    size_t index;
};

/* Adds a validation error; true while there is space for more. Copies the text. */
bool duda_validation_errors_add(struct duda_validation_errors *errors, const struct mk_allocator *memory,
                                const struct duda_field_path *path, mk_str text);

#endif
