/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of groups whose server was killed, and could not remove them. */
#ifndef ISOLATE_STALE_DIRS_H
#define ISOLATE_STALE_DIRS_H

/* Removes those below `base` that belong to the user whose rights we have, are older than a moment, and have
 * a socket on which no process listens. */
void isolate_stale_dirs_remove(const char *base);

#endif
