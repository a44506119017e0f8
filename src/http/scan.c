/* SPDX-License-Identifier: Apache-2.0 */
#include "http/scan.h"

/* Classes of most visible ASCII characters: PLAIN for delimiters, TOKEN for token characters, LABEL for token
 * characters that may be in host labels. The table names the exceptions. */
#define PLAIN (MK_SCAN_VALUE | MK_SCAN_TARGET | MK_SCAN_ETAG | MK_SCAN_QUOTED | MK_SCAN_CLEAR)
#define TOKEN (PLAIN | MK_SCAN_TOKEN)
#define LABEL (TOKEN | MK_SCAN_LABEL)

const uint8_t mk_scan_classes[256] = {
    ['\t'] = MK_SCAN_VALUE | MK_SCAN_QUOTED,
    [' '] = MK_SCAN_VALUE | MK_SCAN_QUOTED,
    ['!'] = TOKEN,
    ['"'] = MK_SCAN_VALUE | MK_SCAN_TARGET | MK_SCAN_CLEAR,
    ['#'] = TOKEN & ~(MK_SCAN_TARGET | MK_SCAN_CLEAR),
    ['$'] = TOKEN & ~MK_SCAN_CLEAR,
    ['%'] = TOKEN & ~MK_SCAN_CLEAR,
    ['&' ... '\''] = TOKEN,
    ['('] = PLAIN & ~MK_SCAN_CLEAR,
    [')'] = PLAIN,
    ['*' ... '+'] = TOKEN,
    [','] = PLAIN,
    ['-'] = LABEL,
    ['.'] = TOKEN & ~MK_SCAN_CLEAR,
    ['/'] = PLAIN,
    ['0' ... '9'] = LABEL,
    [':'] = PLAIN,
    [';'] = PLAIN & ~MK_SCAN_CLEAR,
    ['<' ... '>'] = PLAIN,
    ['?'] = PLAIN & ~MK_SCAN_CLEAR,
    ['@'] = PLAIN,
    ['A' ... 'Z'] = LABEL,
    ['['] = PLAIN,
    ['\\'] = PLAIN & ~(MK_SCAN_QUOTED | MK_SCAN_CLEAR),
    [']'] = PLAIN,
    ['^'] = TOKEN,
    ['_'] = LABEL,
    ['`'] = TOKEN,
    ['a' ... 'z'] = LABEL,
    ['{'] = PLAIN,
    ['|'] = TOKEN,
    ['}'] = PLAIN,
    ['~'] = TOKEN,
    [0x80 ... 0xff] = MK_SCAN_VALUE | MK_SCAN_ETAG | MK_SCAN_QUOTED,
};
