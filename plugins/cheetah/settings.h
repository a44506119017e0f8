/* SPDX-License-Identifier: Apache-2.0 */
/* [CHEETAH]: the shell's socket and its permitted users. */
#ifndef CHEETAH_SETTINGS_H
#define CHEETAH_SETTINGS_H

#include <monkey/plugin.h>
#include <sys/types.h>

#define CHEETAH_FOLDER "/run/monkey"
#define CHEETAH_SOCKET CHEETAH_FOLDER "/cheetah.sock"

/* Leaves space for the temporary name in a struct sockaddr_un. */
enum { CHEETAH_PATH_MAX = 96, CHEETAH_SESSION_SLOTS_MAX = 256 };

struct cheetah_group {
    mk_str name; /* absent: none */
    gid_t gid;
};

struct cheetah_settings {
    bool is_server; /* the key Listen, whose only value is SERVER; always true */
    mk_str path;    /* absolute, NUL-terminated */
    struct cheetah_group group;
    unsigned mode; /* 0: not set */
    uint64_t idle_ms;
    uint32_t request_ms; /* how long the head and the content of an HTTP request may take */
    unsigned sessions;
};

extern const struct mk_conf_table cheetah_table;

/* Completes and validates the settings. Returns -EINVAL after reporting an error. `section` is for
 * mk_config_error(). */
int cheetah_settings_read(struct mk_config *config, struct cheetah_settings *out, const void **section);

#endif
