/* SPDX-License-Identifier: Apache-2.0 */
/* The side of `monkey run` of what ipc_protocol.h describes: connections of the server in front, their questions, the
 * browsers that wait for news. */
#ifndef DUDA_DEV_IPC_SERVER_H
#define DUDA_DEV_IPC_SERVER_H

#include "ipc_protocol.h"

#include <monkey/buf.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* Streams of events leave the rest of the places to questions, which are answered at once. */
enum { DEV_IPC_CLIENTS_MAX = 512, DEV_IPC_STREAMS_MAX = 384 };

struct dev_ipc_client {
    int fd; /* -1: the place is free */
    bool gets_events;
    uint64_t since; /* counts those that get events */
    struct mk_buf request;
    struct mk_buf reply; /* what is left to be sent */
    bool ends;           /* when it is sent */
};

/* What the office asks about each question: writes the answer. */
struct dev_ipc_server_ops {
    /* False: something else answers, over `fd`, of which it has a copy. */
    bool (*ask)(void *ctx, bool html, mk_str method, mk_str target, int fd, struct mk_buf *reply);
    void (*fault)(void *ctx, bool html, mk_str method, mk_str target, struct mk_buf *reply);
};

struct dev_ipc_server {
    int fd;
    const struct dev_ipc_server_ops *ops;
    void *ctx;
    uint64_t state, n_streams; /* there were so many streams up to now */
    struct dev_ipc_client at[DEV_IPC_CLIENTS_MAX];
};

/* False: reported. */
bool dev_ipc_server_open(struct dev_ipc_server *o, const char *path, const struct dev_ipc_server_ops *ops,
                         void *ctx);
void dev_ipc_server_close(struct dev_ipc_server *o);
/* Tells all visitors that wait for news. */
void dev_ipc_server_publish_state(struct dev_ipc_server *o, uint64_t state);
/* Adds what is to be waited for; answers how many were added, at most DEV_IPC_CLIENTS_MAX + 1. */
size_t dev_ipc_server_add_pollfds(const struct dev_ipc_server *o, struct pollfd *fds);
/* Accepts, reads, answers, sends: what is possible now. */
void dev_ipc_server_process(struct dev_ipc_server *o);

#endif
