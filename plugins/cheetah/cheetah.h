/* SPDX-License-Identifier: Apache-2.0 */
/* What one configuration knows of the shell. */
#ifndef SHELL_CHEETAH_H
#define SHELL_CHEETAH_H

#include "seats.h"
#include "settings.h"

struct cheetah {
    struct shell_settings settings;
    const void *section;
    struct shell_seats *seats;

    /* The socket; see socket.h. */
    int fd;
    pid_t master; /* who made it, so that nobody else removes it */
    uid_t owner;
    gid_t group;
    dev_t dev;
    ino_t ino;
    bool has_before; /* there was one before it, which is kept until this configuration serves */
};

MK_PLUGIN_DECLARE(cheetah);
#define SHELL_PLUGIN (&MK_PLUGIN_OF(cheetah))

#endif
