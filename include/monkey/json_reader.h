/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON (RFC 8259) token by token: for code that stores a document directly in its own structs. To read
 * values instead, see monkey/json_value.h. In the program `monkey`, these functions are in monkey-readers.so
 * (docs/guide/plugins.md). */
#ifndef MONKEY_JSON_READER_H
#define MONKEY_JSON_READER_H

#include <monkey/allocator.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Limits for parsing JSON. A zero member selects its default. */
struct mk_json_limits {
    size_t size;          /**< bytes of text; default: 1 MB */
    size_t depth;         /**< nesting depth of objects and arrays; default: 32, maximum: MK_JSON_DEPTH_MAX */
    size_t items;         /**< total number of elements and members; default: 65,536 */
    uint64_t reserved[4]; /**< must be zero */
};

/** Upper bound for the `depth` limit. */
enum { MK_JSON_DEPTH_MAX = 64 };

/** Maximum size of an error message in bytes, including the NUL. */
enum { MK_JSON_MESSAGE_MAX = 256 };

/** Why and where a text was rejected. */
struct mk_json_error {
    size_t offset;                     /**< in bytes, from 0 */
    size_t line, column;               /**< from 1; columns count characters, as editors do */
    char message[MK_JSON_MESSAGE_MAX]; /**< empty: memory is exhausted */
    uint64_t reserved[2];              /**< zero */
};

/** A reader: a position in a text, with the limits that remain. Only mk_json_reader_init() and the functions
 * below change it. After an error, `error` is not 0; do not use the reader any further. */
struct mk_json_reader {
    mk_str text;
    size_t at;
    const struct mk_allocator *memory; /**< allocates strings that contain escapes */
    size_t depth, depth_max;           /**< number of open arrays and objects, and its limit */
    size_t items_left;
    struct mk_json_error *info;
    int error;            /**< 0; -EBADMSG: not JSON; -EMSGSIZE: a limit is exceeded; -ENOMEM; or the
                           * error passed to mk_json_reader_fail() */
    uint64_t reserved[2]; /**< zero */
};

/**
 * Begins to read a text. `limits` may be NULL. After an error, *info describes it. `text`, `memory` and
 * `info` must outlive the reader. Returns false if the text is too long. The functions below that return a
 * bool return false on error. All functions of this header are thread-safe.
 *
 *     // reads {"NAME": NUMBER, ...}
 *     mk_json_reader_init(&r, text, &memory, NULL, &info) && mk_json_reader_expect(&r, '{', "an object") &&
 *         mk_json_reader_enter(&r);
 *     if (!r.error && !mk_json_reader_accept(&r, '}'))
 *         do {
 *             if (mk_json_reader_count(&r) && mk_json_reader_name(&r, &name) &&
 *                 mk_json_reader_expect(&r, ':', "`:`") && mk_json_reader_number(&r, &number, &is_integer))
 *                 add_price(name, number);
 *         } while (!r.error && mk_json_reader_next_element(&r, '}'));
 */
MK_API bool mk_json_reader_init(struct mk_json_reader *reader, mk_str text, const struct mk_allocator *memory,
                                const struct mk_json_limits *limits, struct mk_json_error *info);
/** Expects the end of the text, after optional white space. */
MK_API bool mk_json_reader_expect_end(struct mk_json_reader *reader);

/** Returns the next character that is not white space, without consuming it; 0 at the end. */
MK_API char mk_json_reader_peek(struct mk_json_reader *reader);
/** Consumes the next character if it is `expected`, and returns whether it was. Never fails. */
MK_API bool mk_json_reader_accept(struct mk_json_reader *reader, char expected);
/** Like mk_json_reader_accept(), but reports an error if the next character is not `expected`. The message
 * contains `expectation`, which describes the expected text. */
MK_API bool mk_json_reader_expect(struct mk_json_reader *reader, char expected, const char *expectation);
/** Call it after an element or member. Returns true if another one follows, and false on error or at the end
 * of the array or object, which ends with the character `close`. */
MK_API bool mk_json_reader_next_element(struct mk_json_reader *reader, char close);
/** Enters an array or object whose opening bracket was consumed. Fails if the nesting is too deep. */
MK_API bool mk_json_reader_enter(struct mk_json_reader *reader);
/** Leaves an array or object. */
MK_API void mk_json_reader_leave(struct mk_json_reader *reader);
/** Counts an element or member. Fails if the text has too many. */
MK_API bool mk_json_reader_count(struct mk_json_reader *reader);

/** Consumes a string. The result is a part of the text, or allocated if the string has escapes. */
MK_API bool mk_json_reader_string(struct mk_json_reader *reader, mk_str *out);
/** Like mk_json_reader_string(), but always allocates the string, and terminates it with a NUL. */
MK_API bool mk_json_reader_string_copy(struct mk_json_reader *reader, mk_str *out);
/** Consumes a member name: a string without a NUL. */
MK_API bool mk_json_reader_name(struct mk_json_reader *reader, mk_str *out);
/** Consumes a number. Sets *is_integer to whether it has neither a fraction nor an exponent. */
MK_API bool mk_json_reader_number(struct mk_json_reader *reader, mk_str *out, bool *is_integer);
/** Consumes `word` (`true`, `false` or `null`) if it is the next token, and returns whether it was. Never
 * fails. */
MK_API bool mk_json_reader_literal(struct mk_json_reader *reader, mk_str word);
/** Consumes a value of any type, and sets *out to its text. */
MK_API bool mk_json_reader_skip(struct mk_json_reader *reader, mk_str *out);

/** Stops the reader with an error at the offset `at`. Always returns false. */
MK_API bool mk_json_reader_fail(struct mk_json_reader *reader, int error, size_t at, const char *fmt, ...)
    MK_API_PRINTF(4, 5);

/** Parses a complete JSON number. Returns false if it is malformed, longer than 256 characters, or too large
 * for a double. */
MK_API bool mk_json_number_parse(mk_str text, double *out);
/** Converts an offset in a text, in bytes, to a line and a column, both counted from 1. */
MK_API void mk_json_position(mk_str text, size_t offset, size_t *line, size_t *column);

#ifdef __cplusplus
}
#endif

#endif
