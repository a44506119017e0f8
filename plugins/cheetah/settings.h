/* SPDX-License-Identifier: Apache-2.0 */
/* [CHEETAH]: where the shell is and who may use it. */
#ifndef SHELL_SETTINGS_H
#define SHELL_SETTINGS_H

#include <monkey/plugin.h>
#include <sys/types.h>

#define SHELL_FOLDER "/run/monkey"
#define SHELL_SOCKET SHELL_FOLDER "/cheetah.sock"

/* So that a name for the time of its making fits into a struct sockaddr_un, too. */
enum { SHELL_PATH_MAX = 96, SHELL_SEATS = 256 };

struct shell_group {
    mk_str name; /* absent: none was named */
    gid_t gid;
};

struct shell_settings {
    bool is_server; /* always */
    mk_str path;    /* absolute, ends with a NUL */
    struct shell_group group;
    unsigned mode; /* 0: not said */
    uint64_t idle_ms;
    unsigned sessions;
};

extern const struct mk_conf_table shell_table;

/* Completed and checked; what is wrong was reported, then -EINVAL. `section` is what was written, NULL if
 * nothing was. */
int shell_settings_read(struct mk_config *config, struct shell_settings *out, const void **section);

#endif
