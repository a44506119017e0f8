/* SPDX-License-Identifier: Apache-2.0 */
/* Media types by file extension: the built-in table (generated from conf/monkey.mime by the build) and
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
/* Adds a type. False: out of memory. */
bool mk_mime_add(struct mk_mime *m, mk_str extension, mk_str type) MK_MUST_USE;

enum { MK_MIME_EXTENSION_MAX = 16 };
/* Returns the type of a file name (case-insensitive); lives as long as the table. */
mk_str mk_mime_find(const struct mk_mime *m, mk_str name);
/* Is the string TYPE/SUBTYPE, with or without parameters (RFC 9110, section 8.3.1)? */
bool mk_mime_is_type(mk_str s);
/* Is the type text whose encoding a browser would have to guess? */
bool mk_mime_wants_charset(mk_str type);

#endif
