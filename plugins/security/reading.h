/* SPDX-License-Identifier: Apache-2.0 */
/* One path can be interpreted in several ways: we keep %2F as part of a name and `;` as a letter; a
 * program behind us may read a slash and the end of a name. A rule that checked only our interpretation
 * could be bypassed, so it checks all of them. */
#ifndef SECURITY_READING_H
#define SECURITY_READING_H

#include <monkey/str.h>

enum security_reading {
    SECURITY_READ_SLASHES = 1, /* "%2F" and a backslash separate */
    SECURITY_READ_TAILS = 2,   /* names end before ';', and before dots and blanks at their end */
    SECURITY_READ_ALL = 3
};

/* The readings in which the path may differ from what it is: bits of the above. */
unsigned security_reading_of(mk_str path, bool has_encoded_slash);

/* The path read so (0: as it is), without dot segments and doubled slashes, perhaps in lower case. The room
 * has at least as many bytes as the path. */
mk_str security_reading_make(mk_str path, unsigned how, bool lower, char *room);

#endif
