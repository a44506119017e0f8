/* SPDX-License-Identifier: Apache-2.0 */
/* Edits a user file: all other lines stay unchanged, including comments and invalid ones, and readers never
 * see a partial file. */
#ifndef AUTH_PASSWD_FILE_H
#define AUTH_PASSWD_FILE_H

#include <monkey/str.h>

struct auth_passwd_entry {
    mk_str name;
    mk_str realm; /* absent: name:hash, or, to delete, the whole entry */
    mk_str hash;  /* absent: delete */
};

enum auth_edit { AUTH_ADDED, AUTH_CHANGED, AUTH_DELETED, AUTH_NOT_THERE };

/* Writes or deletes the entry. False: *error names the step that failed, errno the reason. */
bool auth_passwd_file_edit(const char *path, bool create, const struct auth_passwd_entry *entry,
                           enum auth_edit *done, const char **error);

#endif
