/* SPDX-License-Identifier: Apache-2.0 */
/* Media types as Content-Type says them: "text/html; charset=utf-8". In monkey-duda-small.so. */
#ifndef DUDA_MIME_H
#define DUDA_MIME_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The type of a file by its name is a matter of the configuration: mk_request_media_type(duda_request(d), name)
 * answers what the server itself would say. All functions of this file may be called from any thread. */

/** A media type (RFC 9110, section 8.3.1): slices of the text that was read, so no NUL follows them. */
struct duda_mime {
    mk_str type, subtype; /**< "text" and "html", in the case of the text: they are compared without it */
    mk_str parameters;    /**< for duda_mime_next() */
};

/** Reads a text. False: it is no media type, or one of its parameters is none; an absent text, too.
 *
 *     struct duda_mime mime;
 *     if (!duda_mime_read(duda_header(d, "Content-Type"), &mime) || !duda_mime_is(&mime, MK_STR("image/png")))
 *         return 415;
 */
MK_API bool duda_mime_read(mk_str text, struct duda_mime *out) MK_API_MUST_USE;
/** Is it of that type? The pattern may end with a star ("image/" and a star, or a star on both sides), or
 * with a suffix behind it: a star, `/`, a star and "+json" are all types that are written as JSON. */
MK_API bool duda_mime_is(const struct duda_mime *mime, mk_str pattern);
/** The next parameter of *rest, which is mime->parameters at first. A value that was quoted is written to
 * `room` without its quotes and backslashes; all others are slices. False: there are no more, or the room is
 * too small (room->failed). */
MK_API bool duda_mime_next(mk_str *rest, struct mk_buf *room, mk_str *name, mk_str *value) MK_API_MUST_USE;
/** The value of the first parameter of that name, ignoring case; absent: there is none, or no room for it.
 *
 *     char space[80];
 *     struct mk_buf room = mk_buf_fixed(space, sizeof space);
 *     mk_str charset = duda_mime_parameter(&mime, MK_STR("charset"), &room);
 */
MK_API mk_str duda_mime_parameter(const struct duda_mime *mime, mk_str name, struct mk_buf *room);

#ifdef __cplusplus
}
#endif

#endif
