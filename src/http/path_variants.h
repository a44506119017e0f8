/* SPDX-License-Identifier: Apache-2.0 */
/* Path variants: programs may interpret the same path differently. This server keeps %2F as part of a name
 * and `;` as a character; a program that receives the request may interpret them as a slash, or as the end of
 * a name. A rule that checked only this server's interpretation could be bypassed. */
#ifndef MK_HTTP_PATH_VARIANTS_H
#define MK_HTTP_PATH_VARIANTS_H

#include "base/arena.h"
#include "base/str.h"

/* Ways in which a program may interpret a path decoded by mk_path_decode(): */
enum mk_path_reading {
    MK_PATH_READING_SLASHES = 1 << 0, /* "%2F" and a backslash are separators */
    MK_PATH_READING_TAILS =
        1 << 1, /* names lose path parameters (from ';' on), NTFS streams, surrounding blanks and trailing
                 * dots; ASP.NET session segments are removed */
    MK_PATH_READING_AUTHORITY = 1 << 2, /* the name after two leading slashes is a host */
    MK_PATH_READING_QUERY = 1 << 3,     /* the path ends before the first '?', '#' or NUL */
    MK_PATH_READING_ALL = 15,
};

/* Maximum length of a path that may have variants, and maximum number of its variants. Where variants matter,
 * paths beyond these limits are rejected, because computing variants costs much more than the rest of a
 * request. */
enum { MK_PATH_VARIED_MAX = 2048, MK_PATH_VARIANTS_MAX = 128 };

/* A path may continue after a script name (PATH_INFO): "/index.php/admin" leads to "/index.php", which
 * handles "/admin". PHP scripts are always recognized; this struct names the host's other scripts. */
struct mk_path_scripts {
    const mk_str *endings; /* such as ".py"; case-insensitive; `?` matches any character, and a final `*`
                            * matches the rest of the name */
    size_t n;
    mk_str name; /* a single script, without its leading slash; empty: none */
};

/* Does the path continue after a script name? `scripts` may be NULL. */
bool mk_path_has_script(mk_str path, const struct mk_path_scripts *scripts);

/* Might another program interpret the path differently? `has_slash`: mk_path_decode() has set
 * MK_PATH_ENCODED_SLASH. Returns false for nearly every path. `scripts` may be NULL. */
bool mk_path_may_vary(mk_str path, bool has_slash, const struct mk_path_scripts *scripts);

/* Writes the path to `buf` as interpreted by a program in the ways `how` (flags of enum mk_path_reading),
 * without dot segments and repeated slashes. `buf` must be as large as the path, which begins with '/'. */
mk_str mk_path_interpret(mk_str path, unsigned how, char *buf);
/* Decodes the path again, including overlong UTF-8, and drops tabs and line ends. `buf` as for
 * mk_path_interpret(). */
mk_str mk_path_decode_again(mk_str path, char *buf);

/* Does any interpretation contain a ".." segment? Which part of the path such a segment removes depends on
 * the interpretation, so a program may leave the folder that a rule or route refers to. True for a path
 * longer than MK_PATH_VARIED_MAX. */
bool mk_path_hides_dot_segments(mk_str path);

/* The first n_readings paths are interpretations of the whole path; the paths after script names follow, with
 * their interpretations. */
struct mk_path_variants {
    mk_str list[MK_PATH_VARIANTS_MAX];
    size_t n, n_readings;
};

/* Finds all other paths that a program may derive from `path`, without duplicates. Returns 0 or a status: 400
 * for a path with too many variants, 414 for a path that is too long, 503 if out of memory; *out is then
 * empty. */
unsigned mk_path_variants(mk_str path, bool has_slash, const struct mk_path_scripts *scripts,
                          struct mk_arena *arena, struct mk_path_variants *out) MK_MUST_USE;

#endif
