/* SPDX-License-Identifier: Apache-2.0 */
/* Opens files for a privileged process, and prevents a less privileged process from redirecting an open to
 * another file. */
#ifndef MK_OS_SAFE_OPEN_H
#define MK_OS_SAFE_OPEN_H

#include "os/identity.h"

/* Like open() with an absolute path, but fails if `other` could redirect it. Returns a descriptor; -ELOOP:
 * the last component is a symbolic link, another component is a link that root does not own or that `other`
 * may replace, or there are too many links; -EPERM: `other` may replace another component, or write to the
 * folder of the file. */
int mk_safe_open(const char *path, int flags, unsigned mode, const struct mk_identity *other) MK_MUST_USE;

#endif
