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

/* The result of checking a value. */
struct duda_rejection {
    const char *code;      /* code of struct duda_validation_error; NULL: the value is valid */
    const char *message;   /* message of a custom check; NULL: describe the rules of the field */
    bool is_out_of_memory; /* the value could not be checked */
};

/* Each function stores a value at `at`, the address of the element or field, unless the rules of the field
 * forbid the value. */
struct duda_rejection duda_schema_field_put_bool(const struct duda_schema_field *m, void *at, bool truth);
struct duda_rejection duda_schema_field_put_integer(const struct duda_schema_field *m, void *at,
                                                    struct duda_integer n);
struct duda_rejection duda_schema_field_put_double(const struct duda_schema_field *m, void *at, double n);
/* For strings, enums, timestamps and bytes. Bytes are decoded from base64 into `memory`. */
struct duda_rejection duda_schema_field_put_string(const struct duda_schema_field *m, void *at, mk_str text,
                                                   const struct mk_allocator *memory);
/* Runs the custom check of the field for the value at `at`, which is stored and otherwise valid. */
struct duda_rejection duda_schema_field_run_check(const struct duda_schema_field *m, const void *at);
/* Checks the number of elements of a list and, with `.is_unique`, that they differ. */
struct duda_rejection duda_schema_field_check_list(const struct duda_schema_field *m, const void *list,
                                                   size_t n, const struct mk_allocator *memory);

/* Returns the field of the struct at `base`, as a value. */
struct duda_value duda_schema_field_value(const struct duda_schema_field *m, const void *base);
/* Returns the value of one list element, or of the field itself if it is not a list. */
struct duda_value duda_schema_field_value_at(const struct duda_schema_field *m, const void *at);
/* Returns the value of one list element of an integer field, or of the field itself if it is not a list. */
struct duda_integer duda_schema_field_integer(const struct duda_schema_field *m, const void *at);
/* Clears an optional member, as null in JSON does: no value, and the presence flag is false. Returns false, and
 * changes nothing, if the member always has a value: a number, a bool, an enum, a time or an object without a
 * presence flag. */
bool duda_schema_field_clear(const struct duda_schema_field *m, void *base);
/* Writes the shortest decimal that parses back to the same number; infinity and NaN become `null`. */
void duda_number_write(struct mk_buf *out, double n);
/* Returns the index of the field with that name, or MK_STR_NONE. */
size_t duda_schema_field_find(const struct duda_schema *schema, mk_str name);
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

/* A validation error to add. */
struct duda_violation {
    const struct duda_field_path *path;    /* NULL: the whole input */
    const struct duda_schema_field *field; /* the field whose rules were violated; NULL: none */
    bool is_list;                          /* the rules for the list, not for an element */
    const char *code;
    mk_str message; /* copied */
};

/* Adds a validation error. Returns true while there is space for more. */
bool duda_validation_errors_add(struct duda_validation_errors *errors, const struct mk_allocator *memory,
                                const struct duda_violation *violation);

#endif
