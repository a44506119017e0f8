/* SPDX-License-Identifier: Apache-2.0 */
/* Parser for media types, as in Content-Type: "text/html; charset=utf-8". In monkey-duda-small.so. */
#ifndef DUDA_MIME_H
#define DUDA_MIME_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The configuration maps file names to media types: mk_request_media_type(duda_request(d), name) returns the
 * type that the server itself would send. All functions in this file are thread-safe. */

/** A media type (RFC 9110, section 8.3.1): slices of the parsed string, not NUL-terminated. */
struct duda_mime {
    mk_str type, subtype; /**< "text" and "html", in their original case; comparisons ignore case */
    mk_str parameters;    /**< for duda_mime_next() */
    uint64_t reserved[2]; /**< for later releases */
};

/**
 * Parses a media type. Returns false if the string or one of its parameters is invalid, or if the string is
 * absent.
 *
 *     struct duda_mime mime;
 *     if (!duda_mime_read(duda_header(d, "Content-Type"), &mime))
 *         return 400;
 *     if (!duda_mime_is(&mime, MK_STR("image/png")))
 *         return 415;
 */
MK_API bool duda_mime_read(mk_str text, struct duda_mime *out) MK_API_MUST_USE;
/** Does the media type match the pattern? A star in the pattern matches any type or subtype: "image/"
 * followed by a star matches every image type. A suffix may follow the last star: "application/" followed by
 * a star and "+json" matches every application type with JSON syntax. */
MK_API bool duda_mime_is(const struct duda_mime *mime, mk_str pattern);
/** Parses the next parameter of *rest, which starts as mime->parameters. A quoted value is written to `buf`
 * without its quotes and backslashes; all other strings are slices. Returns false if there are no more
 * parameters, or if `buf` is too small (buf->failed). */
MK_API bool duda_mime_next(mk_str *rest, struct mk_buf *buf, mk_str *name, mk_str *value) MK_API_MUST_USE;
/**
 * The value of the first parameter with that name, ignoring case; absent if there is none, or if `buf` is too
 * small.
 *
 *     char space[80];
 *     struct mk_buf buf = mk_buf_fixed(space, sizeof space);
 *     mk_str charset = duda_mime_parameter(&mime, MK_STR("charset"), &buf);
 */
MK_API mk_str duda_mime_parameter(const struct duda_mime *mime, mk_str name, struct mk_buf *buf);

#ifdef __cplusplus
}
#endif

#endif
