/* SPDX-License-Identifier: Apache-2.0 */
/* Media types by file extension: the built-in table (which the build generates from conf/monkey.mime) and the
 * additions of the configuration. */
#ifndef MK_FILES_MIME_H
#define MK_FILES_MIME_H

#include "base/map.h"

/* "\nEXTENSION TYPE\n...", in lower case, sorted; see cmake/mime.cmake. */
extern const char mk_mime_builtin[];
extern const size_t mk_mime_builtin_len;

struct mk_mime {
    struct mk_map added; /* extension -> mk_str *, added by the configuration */
    mk_str default_type; /* for unknown extensions */
    struct mk_arena *arena;
};

/* The arena must live as long as the table. */
void mk_mime_init(struct mk_mime *m, struct mk_arena *arena, mk_str default_type);
/* Sets the type of an extension (case-insensitive), which overrides the built-in type. `type` is not copied.
 * False: out of memory. */
bool mk_mime_add(struct mk_mime *m, mk_str extension, mk_str type) MK_MUST_USE;

enum { MK_MIME_EXTENSION_MAX = 16 };
/* Returns the media type for the extension of a file name (case-insensitive). The result lives as long as the
 * table. */
mk_str mk_mime_find(const struct mk_mime *m, mk_str name);
/* Is the string TYPE/SUBTYPE, with or without parameters (RFC 9110, section 8.3.1)? */
bool mk_mime_is_type(mk_str s);
/* Is it a text type without parameters, so that a browser would have to guess the encoding? */
bool mk_mime_wants_charset(mk_str type);

#endif
