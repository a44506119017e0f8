/* SPDX-License-Identifier: Apache-2.0 */
/* The server side of ipc_protocol.h in `monkey run`: it accepts connections from the front server, replies to
 * their requests, and sends events to browsers. */
#ifndef DUDA_DEV_IPC_SERVER_H
#define DUDA_DEV_IPC_SERVER_H

#include "ipc_protocol.h"

#include <monkey/buf.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* Event streams are limited, so that enough connections remain for requests, which are short. */
enum { DEV_IPC_CLIENTS_MAX = 512, DEV_IPC_STREAMS_MAX = 384 };

struct dev_ipc_client {
    int fd; /* -1: unused */
    bool gets_events;
    uint64_t since; /* sequence number of the event stream; the oldest stream has the lowest */
    struct mk_buf request;
    struct mk_buf reply; /* the part of the reply that is not sent yet */
    bool ends;           /* close the connection once the reply is sent */
};

/* Callbacks that write the reply to each request. */
struct dev_ipc_server_ops {
    /* Returns false if other code sends the reply later over `fd`, which that code has duplicated. */
    bool (*check_request)(void *ctx, bool html, mk_str method, mk_str target, int fd, struct mk_buf *reply);
    void (*fault)(void *ctx, bool html, mk_str method, mk_str target, struct mk_buf *reply);
};

struct dev_ipc_server {
    int fd;
    const struct dev_ipc_server_ops *ops;
    void *ctx;
    uint64_t state, n_streams; /* n_streams: number of streams opened so far */
    struct dev_ipc_client at[DEV_IPC_CLIENTS_MAX];
};

/* On failure, reports the error and returns false. */
bool dev_ipc_server_open(struct dev_ipc_server *o, const char *path, const struct dev_ipc_server_ops *ops,
                         void *ctx);
void dev_ipc_server_close(struct dev_ipc_server *o);
/* Sends the state to all event streams. */
void dev_ipc_server_publish_state(struct dev_ipc_server *o, uint64_t state);
/* Adds the descriptors to poll, and returns their number, at most DEV_IPC_CLIENTS_MAX + 1. */
size_t dev_ipc_server_add_pollfds(const struct dev_ipc_server *o, struct pollfd *fds);
/* Accepts, reads, replies and sends as much as possible without blocking. */
void dev_ipc_server_process(struct dev_ipc_server *o);

#endif
