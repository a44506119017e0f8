/* SPDX-License-Identifier: Apache-2.0 */
/* Edits a file of users: all other lines stay unchanged, even comments and faulty ones, and readers never
 * see half a file. */
#ifndef AUTH_PASSWD_FILE_H
#define AUTH_PASSWD_FILE_H

#include <monkey/str.h>

struct auth_passwd_entry {
    mk_str name;
    mk_str realm; /* absent: name:hash, or, to delete, all of the name */
    mk_str hash;  /* absent: delete */
};

enum auth_edit { AUTH_ADDED, AUTH_CHANGED, AUTH_DELETED, AUTH_NOT_THERE };

/* Writes or deletes the entry. False: *why names the step that failed, errno the reason. */
bool auth_passwd_file_edit(const char *path, bool create, const struct auth_passwd_entry *entry,
                           enum auth_edit *done, const char **why);

#endif
