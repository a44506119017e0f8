/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts which files another user can read, from owner, group and mode. */
#ifndef MK_OS_ACCESS_CHECK_H
#define MK_OS_ACCESS_CHECK_H

#include "os/identity.h"

/* Checks the folder named by the first `from` bytes of `path`, then each component below it. Returns the
 * length of the shortest prefix that the user cannot access: a folder without search permission or an
 * unreadable file. 0: all are accessible. Files with an access control list and missing files count as
 * accessible. */
size_t mk_access_check_find_denied(const struct mk_identity *id, const char *path, size_t from);
/* May the user create files in the folder, if the user can enter it? */
bool mk_access_check_may_write(const struct mk_identity *id, const char *folder);

#endif
