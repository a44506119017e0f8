/* SPDX-License-Identifier: Apache-2.0 */
/* Edits a user file. All other lines stay unchanged, including comments and invalid lines, and readers never
 * see a partial file. */
#ifndef AUTH_PASSWD_FILE_H
#define AUTH_PASSWD_FILE_H

#include <monkey/str.h>

struct auth_passwd_entry {
    mk_str name;
    mk_str realm; /* absent: a Basic entry (name:hash), or, when deleting, all entries of the user */
    mk_str hash;  /* absent: delete the entry */
};

enum auth_edit { AUTH_ADDED, AUTH_CHANGED, AUTH_DELETED, AUTH_NOT_THERE };

/* Writes or deletes the entry. On failure, *error names the step that failed, and errno holds the reason. */
bool auth_passwd_file_edit(const char *path, bool create, const struct auth_passwd_entry *entry,
                           enum auth_edit *done, const char **error);

#endif
