/* SPDX-License-Identifier: Apache-2.0 */
/* The types of the shell: its state for a configuration, and for a worker. */
#ifndef CHEETAH_SHELL_TYPE_H
#define CHEETAH_SHELL_TYPE_H

#include "session_slots.h"
#include "settings.h"

struct cheetah {
    const struct mk_plugin *plugin; /* this plugin, for mk_worker_data() and others */
    struct cheetah_settings settings;
    const void *section;
    struct cheetah_session_slots *slots;

    /* The socket; see socket.h. */
    int fd;
    pid_t master; /* the master, which has created the socket and will remove it */
    uid_t owner;
    gid_t group;
    dev_t dev;
    ino_t ino;
    bool has_before; /* the previous socket is kept until this configuration is in use */
};

struct cheetah_session;

struct shell {
    struct mk_worker *worker;
    struct cheetah *cheetah;
    struct mk_watcher *accept_watcher;
    struct mk_timer again; /* retries accept() after descriptors or memory have run out */
    struct cheetah_session *sessions;
    void (*run)(struct cheetah_session *s, mk_str line); /* responds to a line, now or later */
    int statm_fd;                                        /* /proc/self/statm; -1: not readable */
};

#endif
