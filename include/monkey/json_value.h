/* SPDX-License-Identifier: Apache-2.0 */
/* Parses JSON (RFC 8259) into values, finds values by name, index and path, and writes them with the writer
 * of monkey/json.h. In the program `monkey`, these functions are in monkey-readers.so
 * (docs/guide/plugins.md). */
#ifndef MONKEY_JSON_VALUE_H
#define MONKEY_JSON_VALUE_H

#include <monkey/json.h>
#include <monkey/json_reader.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_request;
struct mk_json_member;

/** The type of a value. */
enum mk_json_kind {
    MK_JSON_NULL,
    MK_JSON_BOOL,
    MK_JSON_INTEGER, /**< a number without fraction and exponent that fits into an int64_t */
    MK_JSON_NUMBER,  /**< any other number */
    MK_JSON_STRING,
    MK_JSON_ARRAY,
    MK_JSON_OBJECT
};

/** A value. It owns nothing: the allocator of the parser owns its strings, elements and members. */
struct mk_json_value {
    enum mk_json_kind kind;
    size_t offset; /**< byte offset of the value in the text: see mk_json_position() */
    size_t n;      /**< number of elements or members */
    union {
        bool boolean;
        int64_t integer;
        double number;
        mk_str string; /**< NUL-terminated UTF-8; it may contain NUL bytes */
        const struct mk_json_value *items;
        const struct mk_json_member *members; /**< in the order of the text */
    } of;
};

/** A member of an object. */
struct mk_json_member {
    mk_str name;   /**< NUL-terminated; contains no NUL */
    size_t offset; /**< byte offset of the name in the text */
    struct mk_json_value value;
};

/**
 * Parses a text. All results are allocated from `memory`, and do not point into `text`. `limits` may be NULL.
 *
 * Returns 0; -EBADMSG: not JSON (400); -EINVAL: an object has two members with the same name, or a number
 * is too large (422); -EMSGSIZE: a limit is exceeded (413); or -ENOMEM. On error, *error says why and where,
 * and *out is the JSON value `null`. Thread-safe.
 *
 *     struct mk_json_value v;
 *     struct mk_json_error error;
 *     int e = mk_json_parse(text, &memory, NULL, &v, &error);
 *     if (e)
 *         fprintf(stderr, "%zu:%zu: %s\n", error.line, error.column, error.message);
 *     mk_str street = mk_json_as_string(mk_json_find(&v, "/address/0/street"));
 */
MK_API int mk_json_parse(mk_str text, const struct mk_allocator *memory, const struct mk_json_limits *limits,
                         struct mk_json_value *out, struct mk_json_error *error) MK_API_MUST_USE;

/**
 * Receives a JSON document: the body of a request whose type is application/json or ends in `+json`. Call it
 * from the handler, and return MK_WAIT each time it returns -EAGAIN: the handler is called again when more of
 * the body has arrived. It returns 0 when the document is complete; *value then lives as long as the request.
 * Later calls return the same result. `error` may be NULL.
 *
 * Errors: those of mk_json_parse(); -EMEDIUMTYPE: the body has another type, or a Content-Encoding;
 * -EMSGSIZE: the body exceeds `limits` or `MaxBodySize`; -ECONNRESET: the client disconnected.
 * mk_json_status() maps each error to a status.
 *
 *     const struct mk_json_value *order;
 *     struct mk_json_error error;
 *     int e = mk_request_json(request, NULL, &order, &error);
 *     if (e == -EAGAIN)
 *         return MK_WAIT;
 *     if (e)
 *         return refuse(response, mk_json_status(e), error.message);
 */
MK_API int mk_request_json(struct mk_request *request, const struct mk_json_limits *limits,
                           const struct mk_json_value **value, struct mk_json_error *error) MK_API_MUST_USE;
/** Is the type of the body application/json, or one that ends in `+json`? */
MK_API bool mk_request_has_json(const struct mk_request *request);
/** The response status for a document that could not be received: 400, 413, 415, 422, 500 or 503. */
MK_API unsigned mk_json_status(int error);

/* The functions below accept NULL, as an absent value. They are thread-safe. */

/** The member of that name; NULL if there is none, or if the value is not an object. */
MK_API const struct mk_json_value *mk_json_get(const struct mk_json_value *object, const char *name);
/** The i-th element of an array; NULL beyond its end, or if the value is not an array. */
MK_API const struct mk_json_value *mk_json_at(const struct mk_json_value *array, size_t i);
/** Returns the value that a JSON Pointer (RFC 6901) refers to, such as "/orders/0/price"; "" refers to
 * `value` itself. In names, `~1` stands for `/`, and `~0` for `~`. Returns NULL if the value does not
 * exist. */
MK_API const struct mk_json_value *mk_json_find(const struct mk_json_value *value, const char *path);

/** Is the value absent or null? */
MK_API bool mk_json_is_null(const struct mk_json_value *value);
/** The string; absent if the value is not a string. */
MK_API mk_str mk_json_as_string(const struct mk_json_value *value);
/** If the value is an MK_JSON_INTEGER, sets *out and returns true. */
MK_API bool mk_json_as_int(const struct mk_json_value *value, int64_t *out) MK_API_MUST_USE;
/** If the value is a number, integers included, sets *out and returns true. */
MK_API bool mk_json_as_double(const struct mk_json_value *value, double *out) MK_API_MUST_USE;
/** If the value is a boolean, sets *out and returns true. */
MK_API bool mk_json_as_bool(const struct mk_json_value *value, bool *out) MK_API_MUST_USE;

/** Writes a value. Writes `null` if `value` is NULL, and in place of values nested deeper than
 * MK_JSON_DEPTH_MAX. */
MK_API void mk_json_value_write(struct mk_json_writer *writer, const struct mk_json_value *value);

#ifdef __cplusplus
}
#endif

#endif
