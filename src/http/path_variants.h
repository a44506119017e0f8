/* SPDX-License-Identifier: Apache-2.0 */
/* One path can be read in several ways. This server keeps %2F as part of a name and `;` as a character; a
 * program that gets the request may take a slash, or the end of a name, for them. A rule that judged only this
 * server's reading could be bypassed. */
#ifndef MK_HTTP_PATH_VARIANTS_H
#define MK_HTTP_PATH_VARIANTS_H

#include "base/arena.h"
#include "base/str.h"

/* How a program may read a path that mk_path_decode() has made: */
enum mk_path_reading {
    MK_PATH_READING_SLASHES = 1 << 0, /* "%2F" and a backslash separate names */
    MK_PATH_READING_TAILS =
        1 << 1, /* names end before ';' and before streams of Windows, without blanks around them
                                   and dots after them; sessions of ASP.NET are no names */
    MK_PATH_READING_AUTHORITY = 1 << 2, /* the name after two slashes at the beginning is that of a host */
    MK_PATH_READING_QUERY = 1 << 3,     /* the path ends before '?', '#' and NUL */
    MK_PATH_READING_ALL = 15,
};

/* A longer path that may vary is refused where its variants matter: finding them costs much more than the rest
 * of a request. */
enum { MK_PATH_VARIED_MAX = 2048, MK_PATH_VARIANTS_MAX = 128 };

/* A path goes on after the name of a script: "/index.php/admin" leads to "/index.php", which answers for
 * "/admin". Scripts of PHP are known; these are the others of a host, in any case of letters. */
struct mk_path_scripts {
    const mk_str *endings; /* ".py"; `?` is any character, and `*` at the end the rest of the name */
    size_t n;
    mk_str name; /* of one script, without the slash at its beginning; empty: none */
};

/* Does it go on after the name of a script? `scripts` may be NULL. */
bool mk_path_has_script(mk_str path, const struct mk_path_scripts *scripts);

/* Might another program read the path in another way? `has_slash`: with MK_PATH_ENCODED_SLASH. Nearly every
 * path answers false; true decides nothing. `scripts` may be NULL. */
bool mk_path_may_vary(mk_str path, bool has_slash, const struct mk_path_scripts *scripts);

/* Writes the path as it is read with the bits of `how`: dot segments and repeated slashes removed. `room` has
 * as many bytes as the path, which begins with '/'. */
mk_str mk_path_interpret(mk_str path, unsigned how, char *room);
/* Decodes the path once more, then overlong forms of UTF-8, and drops tabs and line ends. `room` as above. */
mk_str mk_path_decode_again(mk_str path, char *room);

/* Does any reading have a segment of two dots? What such a segment takes back depends on the reading, so a
 * program may climb out of the folder that a rule or a route is about. True for a path that is too long. */
bool mk_path_hides_dot_segments(mk_str path);

/* Readings of the whole path come first; then what follows scripts, and the readings of that. */
struct mk_path_variants {
    mk_str list[MK_PATH_VARIANTS_MAX];
    size_t n, n_readings;
};

/* All paths other than `path` that a program may take it for, each once. 0, or a status: 400 for a path with
 * too many, 414 for one that is too long for this, 503 without memory; then there are none. */
unsigned mk_path_variants(mk_str path, bool has_slash, const struct mk_path_scripts *scripts,
                          struct mk_arena *arena, struct mk_path_variants *out) MK_MUST_USE;

#endif
