/* SPDX-License-Identifier: Apache-2.0 */
/* Members of shapes: what they may hold, and how it gets there. It knows neither JSON nor forms. */
#ifndef DUDA_TEXT_SCHEMA_FIELD_H
#define DUDA_TEXT_SCHEMA_FIELD_H

#include <duda/value.h>

/* An integer as it is written: its amount and its sign. */
struct duda_integer {
    uint64_t amount;
    bool is_negative;
};

/* Each stores what was read at `at`, where the element or member is; false if its rules do not allow it. */
bool duda_schema_field_put_integer(const struct duda_schema_field *m, void *at, struct duda_integer n);
bool duda_schema_field_put_double(const struct duda_schema_field *m, void *at, double n);
bool duda_schema_field_put_string(const struct duda_schema_field *m, void *at, mk_str text);
bool duda_schema_field_put_enum(const struct duda_schema_field *m, void *at, mk_str word);

/* Sets the bool that says whether the member of the struct at `base` is there, if it has one. */
void duda_schema_field_set_present(const struct duda_schema_field *m, void *base, bool has);
/* Is it in the struct? */
bool duda_schema_field_is_present(const struct duda_schema_field *m, const void *base);
/* The member of the struct at `base` as a value. */
struct duda_value duda_schema_field_value(const struct duda_schema_field *m, const void *base);
/* Writes a member of kind integer, which is there and no list: as its value would be, at less cost. */
void duda_schema_field_write_integer(struct mk_buf *out, const struct duda_schema_field *m, const void *base);
/* The member of that name: its index, or MK_STR_NONE. */
size_t duda_schema_field_find(const struct duda_schema *shape, mk_str name);
/* How many elements a list has: may it? */
bool duda_schema_field_allows_count(const struct duda_schema_field *m, size_t n);
/* What an element must be, "an integer from 0 to 150", or, with `count`, the list: "a list of at most 5
 * elements". */
void duda_schema_field_describe(struct mk_buf *out, const struct duda_schema_field *m, bool list);

/* -?[0-9]+ that fits; false if it is not. */
bool duda_integer_parse(mk_str s, struct duda_integer *out);
/* A JSON number as a double; false if it is none, or too large. */
bool duda_number_parse(mk_str s, double *out);
/* The length of the JSON number at the start of `s`; 0 if there is none. */
size_t duda_number_len(mk_str s, bool *is_integer);

/* Where something is, for flaws: a chain from the inside to the outside. */
struct duda_field_path {
    const struct duda_field_path *up;
    const char *name; /* NULL: an element */
    size_t index;
};

/* Adds a flaw; true while there is room for more. The text is copied. */
bool duda_validation_errors_add(struct duda_validation_errors *errors, const struct duda_allocator *memory,
                                const struct duda_field_path *where, mk_str text);

#endif
