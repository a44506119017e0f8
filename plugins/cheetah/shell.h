/* SPDX-License-Identifier: Apache-2.0 */
/* The shell in one worker: it takes sessions from the socket that all workers share. */
#ifndef SHELL_SHELL_H
#define SHELL_SHELL_H

#include "cheetah.h"

struct shell_session;

struct shell {
    struct mk_worker *worker;
    struct cheetah *cheetah;
    struct mk_watcher *door;
    struct mk_alarm *again; /* sessions wait, and there was nothing to take them with */
    struct shell_session *sessions;
    int statm_fd; /* our memory; -1: it cannot be read */
};

int shell_start(struct mk_worker *worker, void *data);
void shell_stop(struct mk_worker *worker, void *data);

/* Is our configuration no longer the one that serves? Then the workers of the next one can be asked, and we
 * should not. */
bool shell_is_superseded(const struct mk_worker *w);

#endif
