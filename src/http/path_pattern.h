/* SPDX-License-Identifier: Apache-2.0 */
/* Path patterns: struct mk_pattern, opaque in monkey/text.h. */
#ifndef MK_HTTP_PATH_PATTERN_H
#define MK_HTTP_PATH_PATTERN_H

#include <monkey/text.h>

enum mk_pattern_kind {
    MK_PATTERN_ALL,    /* a lone star, or slash and star */
    MK_PATTERN_PREFIX, /* a folder and star; matches the folder without its trailing slash as well */
    MK_PATTERN_SUFFIX, /* *.php */
    MK_PATTERN_EXACT,  /* /about */
    MK_PATTERN_GLOB,   /* any other pattern with stars and question marks */
};

#endif
