/* SPDX-License-Identifier: Apache-2.0 */
/* Changing a file of users: what is not about the entry stays as it is, comments and faults too, and nobody
 * ever sees half a file. */
#ifndef AUTH_ENTRIES_H
#define AUTH_ENTRIES_H

#include <monkey/str.h>

struct auth_entry {
    mk_str name;
    mk_str realm; /* absent: name:hash, or, to delete, all of the name */
    mk_str hash;  /* absent: delete */
};

enum auth_edit { AUTH_ADDED, AUTH_CHANGED, AUTH_DELETED, AUTH_NOT_THERE };

/* Writes the entry into the file, or takes it out. False: *why says what could not be done, errno why not. */
bool auth_entries_edit(const char *path, bool create, const struct auth_entry *entry, enum auth_edit *done,
                       const char **why);

#endif
