/* SPDX-License-Identifier: Apache-2.0 */
/* Short style sheets without icons (MK_STYLES=OFF): both themes look the same. */
#include "listing.h"

#define STYLE                                                                                                \
    "<style>\n"                                                                                              \
    "body{font-family:monospace}\n"                                                                          \
    "th,td{padding:0 1rem 0 0;text-align:left}\n"                                                            \
    ".size,.time{text-align:right;white-space:nowrap}\n"                                                     \
    "</style>\n"

const mk_str dirlisting_theme_guineo = MK_STR_INIT(STYLE);
const mk_str dirlisting_theme_plain = MK_STR_INIT(STYLE);
