/* SPDX-License-Identifier: Apache-2.0 */
/* Path patterns: struct mk_pattern, which is opaque in monkey/text.h. */
#ifndef MK_HTTP_PATH_PATTERN_H
#define MK_HTTP_PATH_PATTERN_H

#include <monkey/text.h>

enum mk_pattern_kind {
    MK_PATTERN_ALL,    /* only `*`, or `/` and `*` */
    MK_PATTERN_PREFIX, /* a folder and `*`; also matches the folder without its trailing slash */
    MK_PATTERN_SUFFIX, /* *.php */
    MK_PATTERN_EXACT,  /* /about */
    MK_PATTERN_GLOB,   /* any other pattern with stars and question marks */
};

/* Returns the extension (".php") of a pattern that ends in "*.php", or in "*.php" followed by a slash and
 * `*`; absent for any other pattern. */
mk_str mk_path_pattern_extension(mk_str pattern);

#endif
