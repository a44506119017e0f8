/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas describe the names and rules of the members of a C struct, for JSON, forms and templates. */
#ifndef DUDA_SCHEMA_H
#define DUDA_SCHEMA_H

/* C++ code can use the macros of this header, but C++ compilers warn about designated initializers that omit
 * members, although omitted members are zero. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC system_header
#endif
#if defined(__cplusplus) && defined(__clang_major__) && __clang_major__ >= 18
/* Clang also warns in the files that use the macros, so this header disables the warning there, too. */
#pragma clang diagnostic ignored "-Wmissing-designated-field-initializers"
#endif

#include <monkey/allocator.h>
#include <monkey/buf.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The type of a member. */
enum duda_schema_kind {
    DUDA_KIND_BOOL,     /**< bool */
    DUDA_KIND_INTEGER,  /**< an integer of any size */
    DUDA_KIND_DOUBLE,   /**< double */
    DUDA_KIND_STRING,   /**< mk_str, valid UTF-8 */
    DUDA_KIND_ENUM,     /**< an enum or integer: the index of one of `values` */
    DUDA_KIND_OBJECT,   /**< a struct with its own schema */
    DUDA_KIND_JSON_RAW, /**< mk_str: a JSON value as text */
    DUDA_KIND_BYTES,    /**< mk_str: bytes; base64 in JSON and forms */
    /** int64_t: microseconds since 1970-01-01T00:00:00Z, for the years 1 to 9999; RFC 3339 in JSON and
     * forms */
    DUDA_KIND_TIMESTAMP
};

/** The format that a string must have, for `.format`. */
enum duda_schema_format {
    DUDA_FORMAT_NONE,
    DUDA_FORMAT_EMAIL,     /**< `ana@example.org`: ASCII, as in `<input type=email>`, without comments */
    DUDA_FORMAT_UUID,      /**< 8-4-4-4-12 hexadecimal digits (RFC 9562) */
    DUDA_FORMAT_DATE_TIME, /**< `2026-03-01T12:30:00+01:00` (RFC 3339) */
    DUDA_FORMAT_DATE,      /**< `2026-03-01` (RFC 3339) */
    DUDA_FORMAT_URL,       /**< an absolute URL with http or https, in ASCII and without a user name */
    DUDA_FORMAT_DECIMAL    /**< `-12.50`: digits, optionally with a sign and a fraction */
};

/** A limit of numbers or lengths. `is_set` false: no limit. */
struct duda_bound {
    bool is_set;
    double value;
};

struct duda_schema;

/** A member of a struct. Define it with one of the macros below, which set the required values; add rules
 * by name (`.max_length = 80`). */
struct duda_schema_field {
    const char *name; /**< name of the member */
    enum duda_schema_kind kind;
    size_t offset, size; /**< size of the member or, for a list, of an element */
    bool is_list;        /**< the member points to elements, and a size_t holds their number */
    bool is_map;         /**< a list whose elements are the members of a JSON object: see DUDA_MAP() */
    size_t count_offset; /**< offset of the element count, a size_t */
    bool is_signed;
    const char *const *values; /**< DUDA_KIND_ENUM: NULL-terminated */
    const char *json_name;     /**< name in JSON and forms, if different */
    /**
     * The member may be absent, or null. An absent member stays as it was before the call, so set it to its
     * default first. A null in JSON, or an empty field of a form, clears the member: a string or list becomes
     * absent, and a member with a presence flag becomes zero with the flag false. A number, bool, enum, time
     * or object without a flag cannot be empty, so it stays as it was. In forms and queries, an absent bool
     * becomes false. See DUDA_OPTIONAL().
     */
    bool optional;
    /** 1 + the offset of a bool, the presence flag, which records whether the member has a value; 0: none.
     * DUDA_OPTIONAL() sets it. */
    size_t presence_offset;
    /** Range of integers and doubles. Set it with DUDA_MINIMUM() and DUDA_MAXIMUM(). */
    struct duda_bound at_least, at_most;
    /** Length limits: characters of a string, bytes of DUDA_KIND_BYTES, or elements of a list or map; 0: no
     * limit. */
    size_t min_length, max_length;
    /** A regular expression (see monkey/regex.h) for the string, or for each string of a list. It may match
     * at any position; to match the whole string, write `^...$`. Requires a server with PCRE2. */
    const char *pattern;
    enum duda_schema_format format; /**< of a string, or of each string of a list */
    bool is_unique; /**< a list must not contain an element twice; not for lists of structs or raw JSON */
    /** Checks a value that has passed all other rules; for a list, it is called for each element. `value`
     * points to the member or element. Returns NULL if the value is valid, or an error message that is not
     * freed, such as "`start` must be a working day". */
    const char *(*check)(const void *value);
    /** Replaces the message of all errors of this member, for users: without line and column. NULL: the
     * standard message. */
    const char *message;
    const char *code; /**< replaces the code of errors in the value; NULL: see struct duda_validation_error */
    const struct duda_schema *schema; /**< DUDA_KIND_OBJECT */
    /* Later releases add members here: DUDA_SCHEMA() records the size of the elements. */
};

/**
 * The schema of a struct: its members in output order. Define it with DUDA_SCHEMA(), which also records the
 * sizes that later releases need.
 *
 *     struct person {
 *         mk_str name;
 *         unsigned age;
 *         bool admin;
 *         mk_str *tags;
 *         size_t n_tags;
 *     };
 *     static const struct duda_schema_field person_members[] = {
 *         DUDA_STRING(struct person, name, .min_length = 1, .max_length = 80),
 *         DUDA_INTEGER(struct person, age, DUDA_MAXIMUM(150)),
 *         DUDA_BOOL(struct person, admin, .optional = true),
 *         DUDA_LIST(struct person, tags, n_tags, DUDA_KIND_STRING, .optional = true, .max_length = 10),
 *     };
 *     static const struct duda_schema person_schema = DUDA_SCHEMA(struct person, person_members);
 */
struct duda_schema {
    const char *name; /**< type name in OpenAPI, "struct person"; may be NULL */
    size_t size;      /**< size of the struct */
    const struct duda_schema_field *fields;
    size_t n; /**< at most DUDA_SCHEMA_FIELDS_MAX */
    /** sizeof(struct duda_schema_field) when the service was compiled; set by DUDA_SCHEMA() */
    size_t field_size;
    /** sizeof(struct duda_schema) when the service was compiled; set by DUDA_SCHEMA() */
    size_t schema_size;
    /** Ignores unknown fields; otherwise they are errors. */
    bool allow_unknown;
    /** Validates rules across members: returns NULL, or an error such as "`end` must be after `start`".
     * Called once all members are valid. */
    const char *(*validate)(const void *object);
};

/** Maximum number of members of a schema. */
enum { DUDA_SCHEMA_FIELDS_MAX = 128 };

/* clang-format off */
/** Defines a schema with these members; set further options by name. The macro records the sizes of the
 * structs, so that services run with later releases of Duda, in which the structs have more members. */
#define DUDA_SCHEMA(type, array, ...)                                                                        \
    MK_API_INIT(duda_schema){.name = #type, .size = sizeof(type), .fields = (array), .n = sizeof(array) / sizeof((array)[0]),       \
     .field_size = sizeof((array)[0]), .schema_size = sizeof(struct duda_schema), __VA_ARGS__}

/** Common part of the member macros. */
#define DUDA_SCHEMA_FIELD(type, member, field_kind, ...)                                                     \
    MK_API_INIT(duda_schema_field){.name = #member, .kind = (field_kind), .offset = offsetof(type, member),  \
     .size = sizeof(((type *)0)->member), __VA_ARGS__}
/* clang-format on */
/** Macros for each type of member. The JSON name is that of the member, unless `.json_name` sets another. */
#define DUDA_BOOL(type, member, ...) DUDA_SCHEMA_FIELD(type, member, DUDA_KIND_BOOL, __VA_ARGS__)
#define DUDA_INTEGER(type, member, ...)                                                                      \
    DUDA_SCHEMA_FIELD(type, member, DUDA_KIND_INTEGER,                                                       \
                      .is_signed = (__typeof__(((type *)0)->member))-1 < (__typeof__(((type *)0)->member))1, \
                      __VA_ARGS__)
#define DUDA_DOUBLE(type, member, ...)   DUDA_SCHEMA_FIELD(type, member, DUDA_KIND_DOUBLE, __VA_ARGS__)
#define DUDA_STRING(type, member, ...)   DUDA_SCHEMA_FIELD(type, member, DUDA_KIND_STRING, __VA_ARGS__)
#define DUDA_JSON_RAW(type, member, ...) DUDA_SCHEMA_FIELD(type, member, DUDA_KIND_JSON_RAW, __VA_ARGS__)
#define DUDA_BYTES(type, member, ...)    DUDA_SCHEMA_FIELD(type, member, DUDA_KIND_BYTES, __VA_ARGS__)
#define DUDA_TIMESTAMP(type, member, ...)                                                                    \
    DUDA_SCHEMA_FIELD(type, member, DUDA_KIND_TIMESTAMP, .is_signed = true, __VA_ARGS__)
/** An enum: `list` is a NULL-terminated array of names; the member holds the index. */
#define DUDA_ENUM(type, member, list, ...)                                                                   \
    DUDA_SCHEMA_FIELD(type, member, DUDA_KIND_ENUM, .values = (list), __VA_ARGS__)
/* clang-format off */
/** A nested struct, whose schema is at `inner`. */
#define DUDA_OBJECT(type, member, inner, ...)                                                                \
    MK_API_INIT(duda_schema_field){.name = #member, .kind = DUDA_KIND_OBJECT,                                \
     .offset = offsetof(type, member), .size = sizeof(((type *)0)->member), ##__VA_ARGS__,                   \
     .schema = (inner)}
/** A list: a pointer to elements of that type, and a size_t for their number. Struct elements need `.schema`,
 * enums `.values`. */
#define DUDA_LIST(type, member, count, field_kind, ...)                                                      \
    MK_API_INIT(duda_schema_field){.name = #member, .kind = (field_kind), .offset = offsetof(type, member),  \
     .size = sizeof(*((type *)0)->member), .is_list = true, .count_offset = offsetof(type, count),           \
     __VA_ARGS__}
/** A map: a JSON object with arbitrary names, such as {"red": 3, "blue": 5}. The member points to an array of
 * structs, one for each entry. Their schema `inner` has two members: a string for the name, and the value.
 * The rules of these members apply to each entry, and `.max_length` of the map limits the number of entries.
 * Templates treat a map as a list.
 *
 *     struct stock {
 *         mk_str color;
 *         unsigned n;
 *     };
 *     static const struct duda_schema_field stock_members[] = {
 *         DUDA_STRING(struct stock, color, .max_length = 20),
 *         DUDA_INTEGER(struct stock, n, DUDA_MAXIMUM(1000)),
 *     };
 *     static const struct duda_schema stock_schema = DUDA_SCHEMA(struct stock, stock_members);
 *     struct product {
 *         struct stock *stock;
 *         size_t n_stock;
 *     };
 *     static const struct duda_schema_field product_members[] = {
 *         DUDA_MAP(struct product, stock, n_stock, &stock_schema, .max_length = 50),
 *     };
 */
#define DUDA_MAP(type, member, count, inner, ...)                                                            \
    MK_API_INIT(duda_schema_field){.name = #member, .kind = DUDA_KIND_OBJECT,                                \
     .offset = offsetof(type, member), .size = sizeof(*((type *)0)->member), .is_list = true,                \
     .is_map = true, .count_offset = offsetof(type, count), ##__VA_ARGS__, .schema = (inner)}
/* clang-format on */
/** A list of integers. */
#define DUDA_INTEGERS(type, member, count, ...)                                                              \
    DUDA_LIST(type, member, count, DUDA_KIND_INTEGER,                                                        \
              .is_signed = (__typeof__(*((type *)0)->member))-1 < (__typeof__(*((type *)0)->member))1,       \
              __VA_ARGS__)
/** The smallest and the largest valid number, as options of an integer, a double, or a list of these. Without
 * the option, there is no limit. */
#define DUDA_MINIMUM(n) .at_least = {true, (n)}
#define DUDA_MAXIMUM(n) .at_most = {true, (n)}
/**
 * Makes a member optional, and names the bool of the struct that records whether it has a value: its presence
 * flag. Numbers, times and other members that are not strings need a flag if "no value" must differ from
 * zero. In JSON, a member without a value is null on input, and left out on output; in SQL, it is NULL.
 *
 *     struct issue {
 *         mk_str title;
 *         mk_str due;
 *         int64_t owner;
 *         bool has_owner;
 *     };
 *     static const struct duda_schema_field issue_members[] = {
 *         DUDA_STRING(struct issue, title, .max_length = 100),
 *         DUDA_STRING(struct issue, due, .optional = true, .format = DUDA_FORMAT_DATE),
 *         DUDA_INTEGER(struct issue, owner, DUDA_OPTIONAL(struct issue, has_owner)),
 *     };
 */
#define DUDA_OPTIONAL(type, flag) .optional = true, .presence_offset = offsetof(type, flag) + 1
/** The name of a member in JSON, forms and templates. */
static inline const char *duda_schema_field_name(const struct duda_schema_field *field)
{
    return field->json_name ? field->json_name : field->name;
}
/** Returns the i-th field of a schema. If the service was built against an earlier release, the returned
 * struct lacks the members that were added later. */
static inline const struct duda_schema_field *duda_schema_field_at(const struct duda_schema *schema, size_t i)
{
    const char *first = MK_API_CAST(const char *, MK_API_CAST(const void *, schema->fields));
    return MK_API_CAST(const struct duda_schema_field *,
                       MK_API_CAST(const void *, first + i * schema->field_size));
}
/** Is the field present in the struct at `object`? Always true if the field has no presence flag. */
static inline bool duda_schema_field_is_present(const struct duda_schema_field *field, const void *object)
{
    bool is_present = true;
    if (field->presence_offset)
        memcpy(&is_present, MK_API_CAST(const char *, object) + field->presence_offset - 1,
               sizeof is_present);
    return is_present;
}
/** Sets the presence flag of the field in the struct at `object`, if the field has one. */
static inline void duda_schema_field_set_present(const struct duda_schema_field *field, void *object,
                                                 bool is_present)
{
    if (field->presence_offset)
        memcpy(MK_API_CAST(char *, object) + field->presence_offset - 1, &is_present, sizeof is_present);
}
/** Stores the integer `amount`, or -`amount` if `is_negative`, at the address `at` of an integer member of 1,
 * 2, 4 or 8 bytes, or of a list element. Returns false and stores nothing if the integer does not fit. Does
 * not check the other rules of the field, such as its minimum. */
static inline bool duda_schema_field_set_integer(const struct duda_schema_field *field, void *at,
                                                 bool is_negative, uint64_t amount)
{
    uint64_t all = field->size >= 8 ? UINT64_MAX : (UINT64_C(1) << field->size * 8) - 1;
    uint64_t max = field->is_signed ? all >> 1 : all;
    is_negative = is_negative && amount;
    if (is_negative ? !field->is_signed || amount - 1 > max : amount > max)
        return false;
    uint64_t b8 = is_negative ? ~amount + 1 : amount;
    uint32_t b4 = MK_API_CAST(uint32_t, b8);
    uint16_t b2 = MK_API_CAST(uint16_t, b8);
    uint8_t b1 = MK_API_CAST(uint8_t, b8);
    if (field->size == 8)
        memcpy(at, &b8, sizeof b8);
    else if (field->size == 4)
        memcpy(at, &b4, sizeof b4);
    else if (field->size == 2)
        memcpy(at, &b2, sizeof b2);
    else
        memcpy(at, &b1, sizeof b1);
    return true;
}

/**
 * A validation error. The message is in English. To show the error in another language, or next to its form
 * field, use `code`, `pointer` and the limits:
 *
 * | code | error | limits |
 * |---|---|---|
 * | `syntax` | the input is not JSON, or exceeds a limit of the parser | |
 * | `required` | the member is missing | |
 * | `type` | the value has the wrong type, or is an integer that does not fit | |
 * | `minimum`, `maximum` | the number is too small or too large | `at_least`, `at_most` |
 * | `minLength`, `maxLength` | the string is too short or too long | `at_least`, `at_most` |
 * | `minItems`, `maxItems` | a list or map has too few or too many elements | `at_least`, `at_most` |
 * | `enum` | the value is not one of `.values` | |
 * | `pattern`, `format` | the string does not match | `expected`: the pattern, or the name of the format |
 * | `uniqueItems` | a list contains an element twice | |
 * | `unknown` | the schema has no such member | |
 * | `duplicate` | the member occurs more than once | |
 * | `check` | `.check` of the member, or `.validate` of the schema, has rejected it | |
 */
struct duda_validation_error {
    /** From 1; 0: the input has no lines, such as a form, or the message is the `.message` of the member. */
    size_t line, column;
    mk_str pointer;   /**< location: a JSON pointer (RFC 6901), "/tags/2"; empty for the whole input */
    mk_str message;   /**< message: "`age` must be an integer from 0 to 150" */
    const char *code; /**< see above, or `.code` of the member */
    struct duda_bound at_least, at_most; /**< the limits that apply to the value */
    const char *expected;                /**< the pattern, or the name of the format: "email"; NULL: none */
    uint64_t reserved[2];                /**< for later releases */
};

/** Maximum number of errors reported for one input. */
enum { DUDA_VALIDATION_ERRORS_MAX = 16 };

/** The validation errors of an input, in input order. The strings are in the memory passed to the parser. */
struct duda_validation_errors {
    struct duda_validation_error items[DUDA_VALIDATION_ERRORS_MAX];
    size_t n;
};

/** Returns whether the text has this format; always true for DUDA_FORMAT_NONE. Thread-safe. */
MK_API bool duda_format_matches(enum duda_schema_format format, mk_str text);
/** The name of a format in JSON Schema and in errors: "email", "uuid", "date-time", "date", "uri" or
 * "decimal"; NULL for any other value. */
static inline const char *duda_format_name(enum duda_schema_format format)
{
    switch (format) {
    case DUDA_FORMAT_EMAIL:
        return "email";
    case DUDA_FORMAT_UUID:
        return "uuid";
    case DUDA_FORMAT_DATE_TIME:
        return "date-time";
    case DUDA_FORMAT_DATE:
        return "date";
    case DUDA_FORMAT_URL:
        return "uri";
    case DUDA_FORMAT_DECIMAL:
        return "decimal";
    case DUDA_FORMAT_NONE:
        break;
    }
    return MK_API_NULL;
}
/** Parses a date and time (RFC 3339) into microseconds since 1970-01-01T00:00:00Z; fractions of a microsecond
 * are ignored. Returns false if the text is malformed. Thread-safe. */
MK_API bool duda_timestamp_parse(mk_str text, int64_t *time_us) MK_API_MUST_USE;
/** Appends a time, in microseconds since 1970, as "2026-03-01T12:30:00Z", with a fraction unless it is zero.
 * Appends nothing if the time is not in the years 1 to 9999. */
MK_API void duda_timestamp_write(struct mk_buf *out, int64_t time_us);

/** Formats an error: "line 3, column 7: `age` must be an integer from 0 to 150". */
MK_API void duda_validation_error_write(struct mk_buf *out, const struct duda_validation_error *error);

#ifdef __cplusplus
}
#endif

#endif
