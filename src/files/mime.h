/* SPDX-License-Identifier: Apache-2.0 */
/* Media types by file name: the built-in table (made from conf/monkey.mime when the program is built) and
 * what a configuration says over it. */
#ifndef MK_FILES_MIME_H
#define MK_FILES_MIME_H

#include "base/map.h"

/* "\nEXTENSION TYPE\n...", in lower case, sorted; see cmake/mime.cmake. */
extern const char mk_mime_builtin[];
extern const size_t mk_mime_builtin_len;

struct mk_mime {
    struct mk_map own;   /* extension -> mk_str *, what the configuration added */
    mk_str default_type; /* of a file with an unknown extension */
    struct mk_arena *arena;
};

/* The arena must live as long as the table. */
void mk_mime_init(struct mk_mime *m, struct mk_arena *arena, mk_str default_type);
/* False when memory is out. */
bool mk_mime_add(struct mk_mime *m, mk_str extension, mk_str type) MK_MUST_USE;

enum { MK_MIME_EXTENSION_MAX = 16 };
/* The type of a file of that name, in any case of letters; lives as long as the table. */
mk_str mk_mime_find(const struct mk_mime *m, mk_str name);
/* Is it TYPE/SUBTYPE with parameters or without (RFC 9110, section 8.3.1)? */
bool mk_mime_is_type(mk_str s);
/* Is it text whose encoding a browser would have to guess? */
bool mk_mime_wants_charset(mk_str type);

#endif
