/* SPDX-License-Identifier: Apache-2.0 */
/* Removes folders of groups whose server was killed before it could remove them. */
#ifndef ISOLATE_STALE_DIRS_H
#define ISOLATE_STALE_DIRS_H

/* Removes the groups' folders in `base` that belong to the current user, are not brand new, and have a socket
 * on which no process listens. */
void isolate_stale_dirs_remove(const char *base);

#endif
