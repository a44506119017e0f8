/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AUTH_PASSWD_COMMAND_H
#define AUTH_PASSWD_COMMAND_H

#include <monkey/plugin.h>

/* monkey passwd: creates, changes and deletes entries of user files. */
extern const struct mk_command auth_passwd;

#endif
