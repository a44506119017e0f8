/* SPDX-License-Identifier: Apache-2.0 */
/* The process that keeps a group running: it starts the server of the group, starts it again when it has
 * died, and hands on what it logs. */
#ifndef ISOLATE_KEEPER_H
#define ISOLATE_KEEPER_H

#include "group_type.h"

/* What the master tells it, and its answer when the group has done that. */
enum isolate_order {
    ISOLATE_START = 'S',
    ISOLATE_RELOAD = 'H',
    ISOLATE_END = 'Q', /* when open requests are finished; so does the end of the socket */
    ISOLATE_STOP = 'T',
};

struct isolate_keeper_answer {
    char order;
    bool serves;
};

/* Runs it: in a child of the master, which is to end by itself when `control` does. */
_Noreturn void isolate_keeper_run(const struct isolate_group *group, int control);

#endif
