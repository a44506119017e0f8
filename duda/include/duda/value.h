/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamically typed values, for JSON output and templates. */
#ifndef DUDA_VALUE_H
#define DUDA_VALUE_H

#include <duda/schema.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The type of a value. */
enum duda_value_kind {
    DUDA_VALUE_NULL, /**< null, or absent */
    DUDA_VALUE_BOOL,
    DUDA_VALUE_INTEGER,
    DUDA_VALUE_UNSIGNED,
    DUDA_VALUE_NUMBER,
    DUDA_VALUE_TEXT,
    DUDA_VALUE_RAW,      /**< JSON text, written unchanged */
    DUDA_VALUE_STRUCT,   /**< a struct with a schema */
    DUDA_VALUE_STRUCTS,  /**< an array of structs, or the elements of a list member */
    DUDA_VALUE_LIST,     /**< an array of values */
    DUDA_VALUE_MAP,      /**< an array of named values */
    DUDA_VALUE_BYTES,    /**< bytes; base64 as text and in JSON */
    DUDA_VALUE_TIMESTAMP /**< microseconds since 1970, in `integer`; RFC 3339 as text and in JSON */
};

struct duda_entry;

/**
 * A value. It is passed by value and owns no memory: the data that it points to must live as long as the
 * value is used.
 *
 *     const struct duda_entry page[] = {
 *         {"title", duda_value_cstr("People")},
 *         {"people", duda_value_structs(&person_schema, people, n_people)},
 *     };
 *     duda_render(d, "people.html", duda_value_map(page, MK_LEN(page)));
 */
struct duda_value {
    enum duda_value_kind kind;
    size_t n; /**< number of elements */
    union {
        bool boolean;
        int64_t integer;
        uint64_t uinteger;
        double number;
        mk_str text;
        struct {
            const struct duda_schema_field *field; /**< list member; NULL: an array of structs */
            const struct duda_schema *schema;
            const void *object;
        } in;
        const struct duda_value *list;
        const struct duda_entry *map;
    } of;
};

/** A named value. */
struct duda_entry {
    const char *name;
    struct duda_value value;
};

/**
 * The null value: null in JSON, empty in a template.
 *
 *     return duda_redirect(d, 303, duda_url_for(d, "home", duda_value_null())); // a route without parameters
 */
static inline struct duda_value duda_value_null(void)
{
    struct duda_value v;
    memset(&v, 0, sizeof v);
    v.kind = DUDA_VALUE_NULL;
    return v;
}

/**
 * A boolean value.
 *
 *     return duda_send_json(d, duda_value_members({"ok", duda_value_bool(true)})); // {"ok":true}
 */
static inline struct duda_value duda_value_bool(bool value)
{
    struct duda_value v = duda_value_null();
    v.kind = DUDA_VALUE_BOOL;
    v.of.boolean = value;
    return v;
}

/**
 * A signed integer.
 *
 *     mk_str url = duda_url_for(d, "item", duda_value_members({"id", duda_value_integer(7)}));
 */
static inline struct duda_value duda_value_integer(int64_t n)
{
    struct duda_value v = duda_value_null();
    v.kind = DUDA_VALUE_INTEGER;
    v.of.integer = n;
    return v;
}

/** An unsigned integer, for values above INT64_MAX. */
static inline struct duda_value duda_value_unsigned(uint64_t n)
{
    struct duda_value v = duda_value_null();
    v.kind = DUDA_VALUE_UNSIGNED;
    v.of.uinteger = n;
    return v;
}

/**
 * A floating-point number; infinity and NaN become `null` in JSON.
 *
 *     return duda_send_json(d, duda_value_members({"degrees", duda_value_number(21.5)}));
 */
static inline struct duda_value duda_value_number(double n)
{
    struct duda_value v = duda_value_null();
    v.kind = DUDA_VALUE_NUMBER;
    v.of.number = n;
    return v;
}

/**
 * A string, which is not copied; an absent string becomes null.
 *
 *     return duda_render(d, "list.html", duda_value_members({"q", duda_value_text(duda_query(d, "q"))}));
 */
static inline struct duda_value duda_value_text(mk_str s)
{
    struct duda_value v = duda_value_null();
    v.kind = s.p ? DUDA_VALUE_TEXT : DUDA_VALUE_NULL;
    v.of.text = s;
    return v;
}

/** A C string; NULL becomes null. */
static inline struct duda_value duda_value_cstr(const char *s)
{
    return duda_value_text(mk_str_from_c(s));
}

/** Bytes, which become base64 in text and JSON; an absent string becomes null. */
static inline struct duda_value duda_value_bytes(mk_str bytes)
{
    struct duda_value v = duda_value_text(bytes);
    v.kind = bytes.p ? DUDA_VALUE_BYTES : DUDA_VALUE_NULL;
    return v;
}

/**
 * A time in microseconds since 1970-01-01T00:00:00Z; null outside of the years 1 to 9999.
 *
 *     const struct duda_value at = duda_value_timestamp((int64_t)mk_clock_unix_ms() * 1000); // "2026-11-30T18:00:00Z"
 */
static inline struct duda_value duda_value_timestamp(int64_t time_us)
{
    struct duda_value v = duda_value_integer(time_us);
    bool is_valid = time_us >= INT64_C(-62135596800000000) && time_us < INT64_C(253402300800000000);
    v.kind = is_valid ? DUDA_VALUE_TIMESTAMP : DUDA_VALUE_NULL;
    return v;
}

/** A struct with a schema; NULL becomes null. */
static inline struct duda_value duda_value_struct(const struct duda_schema *schema, const void *object)
{
    struct duda_value v = duda_value_null();
    v.kind = object ? DUDA_VALUE_STRUCT : DUDA_VALUE_NULL;
    v.of.in.schema = schema;
    v.of.in.object = object;
    return v;
}

/**
 * An array of `n` structs with this schema.
 *
 *     return duda_send_json(d, duda_value_structs(&person_schema, people, n_people));
 */
static inline struct duda_value duda_value_structs(const struct duda_schema *schema, const void *object,
                                                   size_t n)
{
    struct duda_value v = duda_value_struct(schema, object);
    v.kind = DUDA_VALUE_STRUCTS;
    v.n = n;
    return v;
}

/**
 * A list of values.
 *
 *     const struct duda_value tags[] = {duda_value_cstr("tea"), duda_value_cstr("cup")};
 *     return duda_send_json(d, duda_value_list(tags, MK_LEN(tags))); // ["tea","cup"]
 */
static inline struct duda_value duda_value_list(const struct duda_value *items, size_t n)
{
    struct duda_value v = duda_value_null();
    v.kind = DUDA_VALUE_LIST;
    v.n = n;
    v.of.list = items;
    return v;
}

/**
 * Named values, as in a JSON object.
 *
 *     const struct duda_entry members[] = {{"id", duda_value_integer(7)}, {"name", duda_value_cstr("tea")}};
 *     return duda_send_json(d, duda_value_map(members, MK_LEN(members))); // {"id":7,"name":"tea"}
 */
static inline struct duda_value duda_value_map(const struct duda_entry *entries, size_t n)
{
    struct duda_value v = duda_value_null();
    v.kind = DUDA_VALUE_MAP;
    v.n = n;
    v.of.map = entries;
    return v;
}
#ifndef __cplusplus
/** A map of the given members. The array of members is valid until the end of the enclosing block.
 *
 *     return duda_render(d, "hello.html",
 *                        duda_value_members({"name", duda_value_cstr("ana")}, {"n", duda_value_integer(3)}));
 */
#define duda_value_members(...)                                                                              \
    duda_value_map((const struct duda_entry[]){__VA_ARGS__},                                                 \
                   MK_LEN(((const struct duda_entry[]){__VA_ARGS__})))
#endif

/** Is the value a list, of values or of structs? */
MK_API bool duda_value_is_list(const struct duda_value *value);
/**
 * The i-th element of a list; null beyond its end.
 *
 *     for (size_t i = 0; i < list.n; i++) {
 *         struct duda_value item = duda_value_item(&list, i);
 *         duda_value_write(&out, &item);
 *     }
 */
MK_API struct duda_value duda_value_item(const struct duda_value *list, size_t i);
/**
 * Looks up a member by name; returns false if there is none.
 *
 *     struct duda_value name;
 *     if (!duda_value_member(&value, MK_STR("name"), &name) || name.kind != DUDA_VALUE_TEXT)
 *         return duda_problem(d, 422, "`name` must be a string");
 */
MK_API bool duda_value_member(const struct duda_value *value, mk_str name, struct duda_value *out);
/**
 * Reads the i-th member and its name; returns false if `i` is out of range.
 *
 *     const char *name;
 *     struct duda_value member;
 *     for (size_t i = 0; duda_value_member_at(&value, i, &name, &member); i++)
 *         duda_printf(d, "%s\n", name);
 */
MK_API bool duda_value_member_at(const struct duda_value *value, size_t i, const char **name,
                                 struct duda_value *out);
/** Is the value truthy? False for null, false, an empty string and an empty list. */
MK_API bool duda_value_is_true(const struct duda_value *value);
/** Writes the value as plain text: strings and raw JSON unchanged, numbers in decimal, booleans as "true" or
 * "false", bytes in base64, and timestamps in RFC 3339 format. Writes nothing for null, lists, maps and
 * structs. */
MK_API void duda_value_write(struct mk_buf *out, const struct duda_value *value);

#ifdef __cplusplus
}
#endif

#endif
