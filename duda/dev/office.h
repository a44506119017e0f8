/* SPDX-License-Identifier: Apache-2.0 */
/* The side of `monkey run` of what desk.h describes: connections of the server in front, their questions, the
 * browsers that wait for news. */
#ifndef DUDA_DEV_OFFICE_H
#define DUDA_DEV_OFFICE_H

#include "desk.h"

#include <monkey/buf.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* Streams of events leave the rest of the places to questions, which are answered at once. */
enum { DEV_VISITORS_MAX = 512, DEV_STREAMS_MAX = 384 };

struct dev_visitor {
    int fd; /* -1: the place is free */
    bool gets_events;
    uint64_t since; /* counts those that get events */
    struct mk_buf question;
    struct mk_buf answer; /* what is left to be sent */
    bool ends;            /* when it is sent */
};

/* What the office asks about each question: writes the answer. */
struct dev_office_ops {
    /* False: something else answers, over `fd`, of which it has a copy. */
    bool (*ask)(void *ctx, bool html, mk_str method, mk_str target, int fd, struct mk_buf *answer);
    void (*fault)(void *ctx, bool html, mk_str method, mk_str target, struct mk_buf *answer);
};

struct dev_office {
    int fd;
    const struct dev_office_ops *ops;
    void *ctx;
    uint64_t state, n_streams; /* there were so many streams up to now */
    struct dev_visitor at[DEV_VISITORS_MAX];
};

/* False: reported. */
bool dev_office_open(struct dev_office *o, const char *path, const struct dev_office_ops *ops, void *ctx);
void dev_office_close(struct dev_office *o);
/* Tells all visitors that wait for news. */
void dev_office_set_state(struct dev_office *o, uint64_t state);
/* Adds what is to be waited for; answers how many were added, at most DEV_VISITORS_MAX + 1. */
size_t dev_office_poll(const struct dev_office *o, struct pollfd *fds);
/* Accepts, reads, answers, sends: what is possible now. */
void dev_office_serve(struct dev_office *o);

#endif
