/* SPDX-License-Identifier: Apache-2.0 */
/* Finds files by pattern. glob(3) of a static program brings the letters of all languages with it. */
#ifndef MK_OS_PATH_GLOB_H
#define MK_OS_PATH_GLOB_H

#include "base/err.h"
#include "base/str.h"

/* Matches a file name: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a character that is meant literally. A
 * leading dot matches only a dot. */
bool mk_path_glob_matches(mk_str pattern, mk_str name);
/* Calls found() for every existing path that matches, in any order, until it returns false. Each component
 * of the pattern is matched alone. Unreadable folders match nothing. -ENAMETOOLONG: the pattern is too long.
 */
mk_err mk_path_glob(mk_str pattern, bool (*found)(void *data, mk_str path), void *data) MK_MUST_USE;

#endif
