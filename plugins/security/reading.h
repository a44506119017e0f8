/* SPDX-License-Identifier: Apache-2.0 */
/* One path may be read in more than one way: we take %2F for a part of a name and `;` for a letter, a program
 * behind us perhaps for a slash and the end of a name. A rule that only looks at the path as we read it could
 * be passed by. So it looks at all of these readings. */
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
