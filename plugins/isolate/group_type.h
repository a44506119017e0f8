/* SPDX-License-Identifier: Apache-2.0 */
/* Types for a group, which is one service of the configuration with the processes that serve it. */
#ifndef ISOLATE_GROUP_TYPE_H
#define ISOLATE_GROUP_TYPE_H

#include <monkey/plugin.h>
#include <monkey/upstream.h>

#include "scoreboard.h"
#include "settings.h"

enum {
    ISOLATE_NAME_MAX = 48,
    ISOLATE_SUPERVISOR_SETTINGS_MAX = 192,
    ISOLATE_FOLDER_MAX = 64,
    ISOLATE_SOCKET_MAX = 96,
};

/* The master's state of a group's processes, kept across configurations. Workers have a copy, made when they
 * were forked; only the scoreboard is shared. */
struct isolate_record {
    struct isolate_record *next;
    char name[ISOLATE_NAME_MAX + 1];
    char folder[ISOLATE_FOLDER_MAX]; /* folder of the socket; private to this server */
    char socket[ISOLATE_SOCKET_MAX];
    uid_t uid; /* user of the public workers, who owns the socket */
    gid_t gid;
    pid_t master;                 /* the process that holds these descriptors; 0: nothing was started yet */
    int control_fd, listen_fd;    /* -1: none. Every child closes these and the next two descriptors */
    int scoreboard_fd, config_fd; /* memory files */
    int presence_fd;              /* memory file on which live public workers hold locks */
    struct isolate_scoreboard *scoreboard;
    struct mk_stat_registry *statistics; /* the group writes it, in the file of its latest supervisor */
    /* trusted copy: the group can overwrite the one in the scoreboard */
    unsigned char secret[ISOLATE_SECRET];
    unsigned configs; /* number of configurations that name the group */
    unsigned users;   /* number of active configurations that name it */
    /* The settings of the running supervisor, as text: if they change, a new supervisor must be started. */
    char supervisor_settings[ISOLATE_SUPERVISOR_SETTINGS_MAX];
    struct isolate_group *latest; /* the group whose configuration the processes have or will get */
};

/* A [ROUTES] pattern that is mapped to the group. */
struct isolate_mount {
    struct isolate_mount *next;
    mk_str pattern;
};

/* The master's state while it waits for the processes to serve a configuration. */
struct isolate_wait {
    uint64_t version;
    int64_t end_ms;
    bool has_served; /* the group has already served an earlier configuration */
};

/* A group in one configuration. */
struct isolate_group {
    struct isolate_group *next;
    const struct isolate_settings *settings;
    const char *name;                   /* name of the service */
    mk_str service;                     /* name or path, as in `Load` */
    mk_str *include;                    /* settings->include.n absolute paths */
    mk_str spool_folder, document_root; /* without a root, the group has an empty folder */
    uint64_t spool_max;                 /* 0: unlimited */
    bool has_user;                      /* the group's user is not the master's */
    uid_t uid;                          /* user ID and group ID of the processes */
    gid_t gid;
    const char *user_name; /* name for looking up supplementary groups; NULL: only a number is known */
    const char *log;       /* the server's log at the time when the group is started */
    bool log_has_priorities, log_is_json;
    struct isolate_mount *mounts;
    struct isolate_route
        *routes; /* routes inside the service; NULL: none, or this process did not check it */
    struct isolate_record *record;
    struct mk_local_backend *part;
    struct isolate_group *before; /* the record's `latest` before this group was started; NULL: none */
    struct mk_config *config;     /* for error reports during startup, else NULL */
    struct isolate_wait wait;
    bool is_used; /* this configuration is counted in record->users */
    bool is_over; /* no configuration uses the record any more: the group must be closed */
};

#endif
