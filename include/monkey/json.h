/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON (RFC 8259). */
#ifndef MONKEY_JSON_H
#define MONKEY_JSON_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A JSON writer: appends values to a buffer, with commas, colons and escapes. It allocates no memory, and
 * needs no cleanup. The nesting depth is not limited. End every object and array that you begin, and write a
 * key before each value in an object.
 *
 *     struct mk_json_writer w = mk_json_writer_to(&buf);
 *     mk_json_begin_object(&w);
 *     mk_json_string(mk_json_key(&w, "name"), name);
 *     mk_json_begin_array(mk_json_key(&w, "sizes"));
 *     for (size_t i = 0; i < n; i++)
 *         mk_json_uint(&w, sizes[i]);
 *     mk_json_end_array(&w);
 *     mk_json_end_object(&w);
 *     if (buf.failed)
 *         ... incomplete
 */
struct mk_json_writer {
    struct mk_buf *out; /**< owned by the caller, who may append whitespace between two values */
    bool comma; /**< a comma precedes the next key or element; set this to continue an object or array that
                             another writer began */
};

/** Creates a writer that appends to the buffer. */
static inline struct mk_json_writer mk_json_writer_to(struct mk_buf *out)
{
    struct mk_json_writer w = {out, false};
    return w;
}

/** Begin and end an object or an array. */
MK_API void mk_json_begin_object(struct mk_json_writer *writer);
MK_API void mk_json_end_object(struct mk_json_writer *writer);
MK_API void mk_json_begin_array(struct mk_json_writer *writer);
MK_API void mk_json_end_array(struct mk_json_writer *writer);

/** Writes the key of the value that follows, and returns the writer, so that one line can hold both. */
MK_API struct mk_json_writer *mk_json_key(struct mk_json_writer *writer, const char *key);
MK_API struct mk_json_writer *mk_json_key_str(struct mk_json_writer *writer, mk_str key);
/** Writes a preformatted key, as mk_json_key() writes it, with its comma and colon: `,"name":`. Saves time
 * for a sequence of objects with the same keys. */
static inline struct mk_json_writer *mk_json_key_again(struct mk_json_writer *writer, mk_str written)
{
    size_t from = writer->comma ? 0 : 1;
    mk_buf_put(writer->out, mk_str_of(written.p + from, written.len - from));
    writer->comma = false;
    return writer;
}

/**
 * Writes a string. Bytes that are not valid UTF-8 are read as Latin-1. Such bytes, and control characters up
 * to U+009F, are written as `\u` and four hexadecimal digits.
 */
MK_API void mk_json_string(struct mk_json_writer *writer, mk_str text);
/** Like mk_json_string(), but for a C string; null for NULL. */
MK_API void mk_json_cstr(struct mk_json_writer *writer, const char *text);
/**
 * Write an integer, a boolean, or null.
 *
 *     mk_json_int(mk_json_key(&json, "id"), 7);
 *     mk_json_bool(mk_json_key(&json, "open"), true); // "id":7,"open":true
 */
MK_API void mk_json_int(struct mk_json_writer *writer, int64_t value);
MK_API void mk_json_uint(struct mk_json_writer *writer, uint64_t value);
MK_API void mk_json_bool(struct mk_json_writer *writer, bool value);
MK_API void mk_json_null(struct mk_json_writer *writer);
/** Writes a number in the shortest form that reads back as the same double; null if it is not finite. */
MK_API void mk_json_double(struct mk_json_writer *writer, double value);
/** Writes a number with a fixed number of decimals, at most 20; null if it is not finite. */
MK_API void mk_json_fixed(struct mk_json_writer *writer, double value, unsigned decimals);
/** Appends a value that is JSON already, without validation. */
MK_API void mk_json_raw(struct mk_json_writer *writer, mk_str json);

/** Begin and end a string whose contents the caller appends to the buffer: text that needs no escaping, such
 * as base64 or a date, or the output of mk_json_escape_to(). */
MK_API void mk_json_begin_string(struct mk_json_writer *writer);
MK_API void mk_json_end_string(struct mk_json_writer *writer);

/** Puts the next key or element on its own line. */
MK_API void mk_json_newline(struct mk_json_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
