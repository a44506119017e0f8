/* SPDX-License-Identifier: Apache-2.0 */
/* Finds files by pattern. Replaces glob(3), which would add the character tables of all locales to a static
 * program. */
#ifndef MK_OS_PATH_GLOB_H
#define MK_OS_PATH_GLOB_H

#include "base/err.h"
#include "base/str.h"

/* Matches a file name: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` to escape a character. Wildcards never match a
 * leading dot. */
bool mk_path_glob_matches(mk_str pattern, mk_str name);
/* Calls found() for every existing path that matches, in any order, until found() returns false. Each
 * component of the pattern is matched separately. Unreadable folders match nothing. -ENAMETOOLONG: the
 * pattern is too long. */
mk_err mk_path_glob(mk_str pattern, bool (*found)(void *data, mk_str path), void *data) MK_MUST_USE;

#endif
