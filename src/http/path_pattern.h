/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of paths: what struct mk_pattern of monkey/text.h keeps closed. */
#ifndef MK_HTTP_PATH_PATTERN_H
#define MK_HTTP_PATH_PATTERN_H

#include <monkey/text.h>

enum mk_pattern_kind {
    MK_PATTERN_ALL,    /* a lone star, or slash and star */
    MK_PATTERN_PREFIX, /* a folder and star; the folder itself too, without its last slash */
    MK_PATTERN_SUFFIX, /* *.php */
    MK_PATTERN_EXACT,  /* /about */
    MK_PATTERN_GLOB,   /* anything else with stars and question marks */
};

#endif
