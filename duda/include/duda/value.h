/* SPDX-License-Identifier: Apache-2.0 */
/* Values: what JSON is written of, and templates are filled with. */
#ifndef DUDA_VALUE_H
#define DUDA_VALUE_H

#include <duda/schema.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a value is. */
enum duda_value_kind {
    DUDA_VALUE_NULL, /**< null, or not there */
    DUDA_VALUE_BOOL,
    DUDA_VALUE_INTEGER,
    DUDA_VALUE_UNSIGNED,
    DUDA_VALUE_NUMBER,
    DUDA_VALUE_TEXT,
    DUDA_VALUE_RAW,     /**< JSON as it is to be written */
    DUDA_VALUE_STRUCT,  /**< a struct with a shape */
    DUDA_VALUE_STRUCTS, /**< elements that a member of kind list counts */
    DUDA_VALUE_LIST,    /**< values */
    DUDA_VALUE_MAP      /**< values with names */
};

struct duda_entry;

/**
 * A value: passed by value, owner of nothing. What it points to must live as long as it is used.
 *
 *     const struct duda_entry page[] = {
 *         {"title", duda_value_cstr("People")},
 *         {"people", duda_value_structs(&person_shape, people, n_people)},
 *     };
 *     duda_render(d, "people.html", duda_value_map(page, MK_LEN(page)));
 */
struct duda_value {
    enum duda_value_kind kind;
    size_t n; /**< of what has elements */
    union {
        bool truth;
        int64_t integer;
        uint64_t natural;
        double number;
        mk_str text;
        struct {
            const struct duda_schema_field *member; /**< of PARTS; NULL: structs of that shape */
            const struct duda_schema *shape;
            const void *at;
        } in;
        const struct duda_value *list;
        const struct duda_entry *map;
    } of;
};

/** A value and its name. */
struct duda_entry {
    const char *name;
    struct duda_value value;
};

/** Nothing: null in JSON, empty in a template. */
static inline struct duda_value duda_value_null(void)
{
    struct duda_value v;
    memset(&v, 0, sizeof v);
    v.kind = DUDA_VALUE_NULL;
    return v;
}

/** True or false. */
static inline struct duda_value duda_value_bool(bool truth)
{
    struct duda_value v = duda_value_null();
    v.kind = DUDA_VALUE_BOOL;
    v.of.truth = truth;
    return v;
}

/** A whole number, with its sign. */
static inline struct duda_value duda_value_integer(int64_t n)
{
    struct duda_value v = duda_value_null();
    v.kind = DUDA_VALUE_INTEGER;
    v.of.integer = n;
    return v;
}

/** A whole number that may be beyond INT64_MAX. */
static inline struct duda_value duda_value_unsigned(uint64_t n)
{
    struct duda_value v = duda_value_null();
    v.kind = DUDA_VALUE_UNSIGNED;
    v.of.natural = n;
    return v;
}

/** A number with a fraction; infinity and NaN are `null` in JSON. */
static inline struct duda_value duda_value_number(double n)
{
    struct duda_value v = duda_value_null();
    v.kind = DUDA_VALUE_NUMBER;
    v.of.number = n;
    return v;
}

/** A text, which is not copied; an absent one is a value that is not there. */
static inline struct duda_value duda_value_text(mk_str s)
{
    struct duda_value v = duda_value_null();
    v.kind = s.p ? DUDA_VALUE_TEXT : DUDA_VALUE_NULL;
    v.of.text = s;
    return v;
}

/** The same of a C string; NULL is a value that is not there. */
static inline struct duda_value duda_value_cstr(const char *s)
{
    return duda_value_text(mk_str_from_c(s));
}

/** A struct with a shape; NULL is a value that is not there. */
static inline struct duda_value duda_value_struct(const struct duda_schema *shape, const void *at)
{
    struct duda_value v = duda_value_null();
    v.kind = at ? DUDA_VALUE_STRUCT : DUDA_VALUE_NULL;
    v.of.in.shape = shape;
    v.of.in.at = at;
    return v;
}

/** An array of `n` structs with this shape. */
static inline struct duda_value duda_value_structs(const struct duda_schema *shape, const void *at, size_t n)
{
    struct duda_value v = duda_value_struct(shape, at);
    v.kind = DUDA_VALUE_STRUCTS;
    v.n = n;
    return v;
}

/** Values one after the other. */
static inline struct duda_value duda_value_list(const struct duda_value *at, size_t n)
{
    struct duda_value v = duda_value_null();
    v.kind = DUDA_VALUE_LIST;
    v.n = n;
    v.of.list = at;
    return v;
}

/** Values with names, as a JSON object has them. */
static inline struct duda_value duda_value_map(const struct duda_entry *at, size_t n)
{
    struct duda_value v = duda_value_null();
    v.kind = DUDA_VALUE_MAP;
    v.n = n;
    v.of.map = at;
    return v;
}

/** Has it elements that are counted? */
MK_API bool duda_value_is_list(const struct duda_value *v);
/** The i-th element of a list; nothing beyond its end. */
MK_API struct duda_value duda_value_item(const struct duda_value *list, size_t i);
/** The member of that name; false if there is no such one. */
MK_API bool duda_value_member(const struct duda_value *v, mk_str name, struct duda_value *out);
/** The i-th member, with its name; false when there are no more. */
MK_API bool duda_value_member_at(const struct duda_value *v, size_t i, const char **name,
                                 struct duda_value *out);
/** Anything but none, false, an empty text, and a list without elements. */
MK_API bool duda_value_is_true(const struct duda_value *v);
/** As a reader expects it: text as it is, numbers in decimal, "true"; nothing for lists and structs. */
MK_API void duda_value_write(struct mk_buf *out, const struct duda_value *v);
/** The shortest decimal that reads back as the same number, with a point whatever the locale says. Infinity
 * and NaN, which JSON does not have, are `null`. */
MK_API void duda_number_write(struct mk_buf *out, double n);

#ifdef __cplusplus
}
#endif

#endif
