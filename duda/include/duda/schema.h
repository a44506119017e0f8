/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: what the members of a C struct are called, and what they may hold, for JSON, forms and templates.
 */
#ifndef DUDA_SCHEMA_H
#define DUDA_SCHEMA_H

#include <duda/allocator.h>
#include <monkey/buf.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a member holds. */
enum duda_schema_kind {
    DUDA_KIND_BOOL,    /**< bool */
    DUDA_KIND_INTEGER, /**< an integer of any size */
    DUDA_KIND_DOUBLE,  /**< double */
    DUDA_KIND_STRING,  /**< mk_str, valid UTF-8 */
    DUDA_KIND_ENUM,    /**< an enum or integer: the index of one of `words` */
    DUDA_KIND_OBJECT,  /**< a struct of another shape */
    DUDA_KIND_JSON_RAW /**< mk_str: a JSON value as it was written, or is to be written */
};

struct duda_schema;

/** A member of a struct. Write it with one of the macros below, which fill what is needed; add rules by name
 * (`.max = 80`). */
struct duda_schema_field {
    const char *name;   /**< of the member */
    const char *called; /**< the name of the field, if it is another one */
    enum duda_schema_kind kind;
    size_t offset, size; /**< size: of the member; in a list, of an element */
    bool is_signed;
    bool is_list;    /**< the member is a pointer to elements, and there is a size_t with their number */
    size_t count_at; /**< its offset */
    /** May be absent or null; the member then keeps what it held before the reading: the default. */
    bool optional;
    /** 1 + the offset of a bool that says whether the member is there (DUDA_PRESENCE); 0: it always is. */
    size_t has_at;
    /** Integers and numbers: both 0 is no limit; a `high` below `low` is no upper limit. */
    double low, high;
    /** Characters of a text, elements of a list; a `max` of 0 is no limit of its own. */
    size_t min, max;
    const char *const *words;        /**< DUDA_KIND_ENUM: ended by NULL */
    const struct duda_schema *shape; /**< DUDA_KIND_OBJECT */
};

/**
 * The shape of a struct: its members in the order in which they are written.
 *
 *     struct person {
 *         mk_str name;
 *         unsigned age;
 *         bool admin;
 *         mk_str *tags;
 *         size_t n_tags;
 *     };
 *     static const struct duda_schema_field person_members[] = {
 *         DUDA_STRING(struct person, name, .min = 1, .max = 80),
 *         DUDA_INTEGER(struct person, age, .high = 150),
 *         DUDA_BOOL(struct person, admin, .optional = true),
 *         DUDA_LIST(struct person, tags, n_tags, DUDA_KIND_STRING, .optional = true, .max = 10),
 *     };
 *     static const struct duda_schema person_shape = DUDA_SCHEMA(struct person, person_members);
 */
struct duda_schema {
    const char *name; /**< of the type, "struct person": what `monkey doc` calls the schema; may be NULL */
    size_t size;      /**< of the struct */
    const struct duda_schema_field *members;
    size_t n; /**< at most DUDA_SCHEMA_MAX */
    /** Fields that no member has are passed over; without this they are errors. */
    bool ignores_unknown;
    /** A rule that concerns more than one member: NULL, or what is wrong, in the form "`end` must be after
     * `start`". Called when all members are right. */
    const char *(*check)(const void *at);
};

/** The most members of a shape. */
enum { DUDA_SCHEMA_MAX = 128 };

/* clang-format off */
/** The shape of a struct with these members; further members by name. */
#define DUDA_SCHEMA(type, array, ...)                                                                         \
    {.name = #type, .size = sizeof(type), .members = (array), .n = sizeof(array) / sizeof((array)[0]),       \
     __VA_ARGS__}

/** What all macros of members begin with. */
#define DUDA_SCHEMA_FIELD(type, member, what, ...)                                                                 \
    {.name = #member, .kind = (what), .offset = offsetof(type, member),                                      \
     .size = sizeof(((type *)0)->member), __VA_ARGS__}
/* clang-format on */
/** Members of each kind. The name of the field is that of the member, unless `.called` says otherwise. */
#define DUDA_BOOL(type, member, ...) DUDA_SCHEMA_FIELD(type, member, DUDA_KIND_BOOL, __VA_ARGS__)
#define DUDA_INTEGER(type, member, ...)                                                                      \
    DUDA_SCHEMA_FIELD(type, member, DUDA_KIND_INTEGER,                                                       \
                      .is_signed = (__typeof__(((type *)0)->member))-1 < (__typeof__(((type *)0)->member))1, \
                      __VA_ARGS__)
#define DUDA_DOUBLE(type, member, ...)   DUDA_SCHEMA_FIELD(type, member, DUDA_KIND_DOUBLE, __VA_ARGS__)
#define DUDA_STRING(type, member, ...)   DUDA_SCHEMA_FIELD(type, member, DUDA_KIND_STRING, __VA_ARGS__)
#define DUDA_JSON_RAW(type, member, ...) DUDA_SCHEMA_FIELD(type, member, DUDA_KIND_JSON_RAW, __VA_ARGS__)
/** `list` is an array of words ended by NULL; the member is the index. */
#define DUDA_ENUM(type, member, list, ...)                                                                   \
    DUDA_SCHEMA_FIELD(type, member, DUDA_KIND_ENUM, .words = (list), __VA_ARGS__)
/** A struct inside of the struct, whose shape is at `inner`. */
#define DUDA_OBJECT(type, member, inner, ...)                                                                \
    DUDA_SCHEMA_FIELD(type, member, DUDA_KIND_OBJECT, .shape = (inner), __VA_ARGS__)
/* clang-format off */
/** A pointer to elements of that kind, and a size_t that counts them. Elements that are structs need
 * `.shape`, words `.words`. */
#define DUDA_LIST(type, member, count, what, ...)                                                            \
    {.name = #member, .kind = (what), .offset = offsetof(type, member),                                      \
     .size = sizeof(*((type *)0)->member), .is_list = true, .count_at = offsetof(type, count),               \
     __VA_ARGS__}
/* clang-format on */
/** The same for integers. */
#define DUDA_INTEGERS(type, member, count, ...)                                                              \
    DUDA_LIST(type, member, count, DUDA_KIND_INTEGER,                                                        \
              .is_signed = (__typeof__(*((type *)0)->member))-1 < (__typeof__(*((type *)0)->member))1,       \
              __VA_ARGS__)
/** What a member is called in JSON, forms and templates. */
static inline const char *duda_schema_field_name(const struct duda_schema_field *m)
{
    return m->called ? m->called : m->name;
}
/** For `.has_at`: the bool that says whether an optional member is there. */
#define DUDA_PRESENCE(type, member) (offsetof(type, member) + 1)

/** One thing that is wrong with what was read. */
struct duda_validation_error {
    size_t line, column; /**< from 1; 0: what was read has no lines, such as a form */
    mk_str pointer;      /**< where: a JSON pointer (RFC 6901), "/tags/2"; empty for the whole */
    mk_str text;         /**< what: "`age` must be an integer from 0 to 150" */
};

/** The most flaws that one reading reports. */
enum { DUDA_VALIDATION_ERRORS_MAX = 16 };

/** All that is wrong, in its order. The texts are in the memory that the reading was given. */
struct duda_validation_errors {
    struct duda_validation_error at[DUDA_VALIDATION_ERRORS_MAX];
    size_t n;
};

/** "line 3, column 7: `age` must be an integer from 0 to 150". */
MK_API void duda_validation_error_write(struct mk_buf *out, const struct duda_validation_error *flaw);

#ifdef __cplusplus
}
#endif

#endif
