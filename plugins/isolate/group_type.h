/* SPDX-License-Identifier: Apache-2.0 */
/* A group: one service of the configuration, and the processes that serve it. The types alone. */
#ifndef ISOLATE_GROUP_TYPE_H
#define ISOLATE_GROUP_TYPE_H

#include <monkey/plugin.h>
#include <monkey/upstream.h>

#include "scoreboard.h"
#include "settings.h"

enum { ISOLATE_NAME_MAX = 48, ISOLATE_SHELL_MAX = 192, ISOLATE_FOLDER_MAX = 64, ISOLATE_SOCKET_MAX = 96 };

/* What the master knows of the processes of a group, from one configuration to the next. Workers have a copy
 * of it, as it was when they started: the board alone is shared. */
struct isolate_record {
    struct isolate_record *next;
    char name[ISOLATE_NAME_MAX + 1];
    char folder[ISOLATE_FOLDER_MAX]; /* of the socket; private to this server */
    char socket[ISOLATE_SOCKET_MAX];
    uid_t uid; /* of the public workers, to which folder and socket belong */
    gid_t gid;
    pid_t master;              /* the process that has these descriptors; 0: nothing was started yet */
    int control_fd, listen_fd; /* -1: none. These four are closed in every child */
    int board_fd, config_fd;   /* files in memory */
    int presence_fd;           /* another: public workers have locks on it for as long as they live */
    struct isolate_scoreboard *scoreboard;
    unsigned char secret[ISOLATE_SECRET]; /* of the board, to which the group may write */
    unsigned configs;                     /* that name it */
    unsigned users;                       /* configurations that are in use */
    char shell[ISOLATE_SHELL_MAX];        /* what cannot be changed while the processes run */
    struct isolate_group *latest;         /* whose configuration the processes have, or are to have */
};

/* A pattern of [ROUTES] that leads to it. */
struct isolate_mount {
    struct isolate_mount *next;
    mk_str pattern;
};

/* For the processes to come up with a configuration. */
struct isolate_wait {
    uint64_t version;
    int64_t end_ms;
    bool has_served; /* another one before */
    bool is_answered;
};

/* A group in one configuration. */
struct isolate_group {
    struct isolate_group *next;
    const struct isolate_settings *settings;
    const char *name; /* of the service */
    mk_str service;   /* as `Load` takes it */
    mk_str *include;  /* absolute paths, settings->include.n of them */
    mk_str spool_folder;
    uint64_t spool_max; /* 0: unlimited */
    bool has_user;      /* other than that of the master */
    uid_t uid;          /* and group */
    gid_t gid;
    const char *user_name; /* for its other groups; NULL: a number alone is known */
    const char *log;       /* of the server, when the group is started */
    bool log_has_priorities;
    struct isolate_mount *mounts;
    struct isolate_record *record;
    struct mk_local_backend *part;
    struct isolate_group *before; /* the latest one when this was started; NULL: none that is in use */
    struct mk_config *config;     /* while it is started: to report what is wrong */
    struct isolate_wait wait;
    bool is_used; /* this configuration counts in record->users */
    bool is_over; /* it was the last one that did */
};

#endif
