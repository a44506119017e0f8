/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc_server.h"

#include <errno.h>
#include <monkey/sse.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool dev_ipc_server_open(struct dev_ipc_server *o, const char *path, const struct dev_ipc_server_ops *ops,
                         void *ctx)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    *o = (struct dev_ipc_server){.fd = -1, .ops = ops, .ctx = ctx};
    for (size_t i = 0; i < DEV_IPC_CLIENTS_MAX; i++)
        o->at[i].fd = -1;
    /* A socket without a listening process marks the folder of a killed `monkey run`, which others remove. So
     * the socket gets its name after listen(). */
    snprintf(a.sun_path, sizeof a.sun_path, "%s.new", path);
    o->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (o->fd >= 0 && bind(o->fd, (const struct sockaddr *)&a, sizeof a) == 0 && listen(o->fd, 1024) == 0 &&
        rename(a.sun_path, path) == 0)
        return true;
    fprintf(stderr, "monkey run: %s: %s\n", path, strerror(errno));
    return false;
}

static void disconnect_client(struct dev_ipc_client *v)
{
    close(v->fd);
    v->fd = -1;
    mk_buf_free(&v->request);
    mk_buf_free(&v->reply);
}

void dev_ipc_server_close(struct dev_ipc_server *o)
{
    for (size_t i = 0; i < DEV_IPC_CLIENTS_MAX; i++)
        if (o->at[i].fd >= 0)
            disconnect_client(&o->at[i]);
    if (o->fd >= 0)
        close(o->fd);
    o->fd = -1;
}

static void append_sse_event(struct dev_ipc_client *v, uint64_t state)
{
    char buf[24];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_buf_add_num(&text, state);
    if (mk_sse_write(&v->reply, &(struct mk_sse_event){.data = mk_buf_str(&text)}))
        v->reply.failed = true;
}

static void send_reply(struct dev_ipc_client *v)
{
    ssize_t n = 0;
    while (v->reply.len && (n = send(v->fd, v->reply.p, v->reply.len, MSG_NOSIGNAL | MSG_DONTWAIT)) > 0)
        mk_buf_consume(&v->reply, (size_t)n);
    bool broken = v->reply.failed || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (broken || (v->ends && v->reply.len == 0))
        disconnect_client(v);
}

void dev_ipc_server_publish_state(struct dev_ipc_server *o, uint64_t state)
{
    o->state = state;
    for (size_t i = 0; i < DEV_IPC_CLIENTS_MAX; i++)
        if (o->at[i].fd >= 0 && o->at[i].gets_events) {
            append_sse_event(&o->at[i], state);
            send_reply(&o->at[i]);
        }
}

size_t dev_ipc_server_add_pollfds(const struct dev_ipc_server *o, struct pollfd *fds)
{
    size_t n = 0;
    for (size_t i = 0; i < DEV_IPC_CLIENTS_MAX; i++)
        if (o->at[i].fd >= 0)
            fds[n++] = (struct pollfd){.fd = o->at[i].fd,
                                       .events = (short)(POLLIN | (o->at[i].reply.len ? POLLOUT : 0))};
    if (n < DEV_IPC_CLIENTS_MAX) /* a slot is free for a new connection */
        fds[n++] = (struct pollfd){.fd = o->fd, .events = POLLIN};
    return n;
}

static void accept_clients(struct dev_ipc_server *o)
{
    int fd;
    for (size_t i = 0; i < DEV_IPC_CLIENTS_MAX; i++) {
        if (o->at[i].fd >= 0)
            continue;
        if ((fd = accept4(o->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0)
            return;
        o->at[i] = (struct dev_ipc_client){
            .fd = fd, .request = mk_buf_growing(DEV_LINE_MAX), .reply = mk_buf_growing(2 * DEV_PAGE_MAX)};
    }
}

/* Closes the oldest stream if there are too many, as pages in background tabs may hold streams. A browser
 * that still needs its stream reconnects. */
static void add_event_stream(struct dev_ipc_server *o, struct dev_ipc_client *v)
{
    struct dev_ipc_client *oldest = NULL;
    size_t n = 0;
    for (size_t i = 0; i < DEV_IPC_CLIENTS_MAX; i++) {
        struct dev_ipc_client *client = &o->at[i];
        bool counts = client->fd >= 0 && client->gets_events;
        n += counts;
        if (counts && (!oldest || client->since < oldest->since))
            oldest = client;
    }
    if (oldest && n >= DEV_IPC_STREAMS_MAX)
        disconnect_client(oldest);
    v->gets_events = true;
    v->since = o->n_streams++;
    append_sse_event(v, o->state);
}

static void reply_to_request(struct dev_ipc_server *o, struct dev_ipc_client *v, mk_str request)
{
    mk_str verb = mk_str_word(&request);
    if (mk_str_eq(verb, MK_STR("events"))) {
        add_event_stream(o, v);
        return;
    }
    bool html = mk_str_eq(mk_str_word(&request), MK_STR("html"));
    mk_str method = mk_str_word(&request), target = mk_str_word(&request);
    v->ends = true;
    if (!mk_str_eq(verb, MK_STR("check")))
        o->ops->fault(o->ctx, html, method, target, &v->reply);
    else if (!o->ops->check_request(o->ctx, html, method, target, v->fd, &v->reply))
        disconnect_client(v);
}

static void read_request(struct dev_ipc_server *o, struct dev_ipc_client *v)
{
    char buf[4096];
    ssize_t n;
    while ((n = recv(v->fd, buf, sizeof buf, MSG_DONTWAIT)) > 0)
        mk_buf_add(&v->request, mk_str_of(buf, (size_t)n));
    size_t end = mk_str_find(mk_buf_str(&v->request), '\n');
    bool has_left = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || v->request.failed;
    if (has_left) {
        disconnect_client(v);
    } else if (end != MK_STR_NONE && !v->ends && !v->gets_events) {
        reply_to_request(o, v, mk_str_of(v->request.p, end));
        if (v->fd >= 0)
            send_reply(v);
    }
}

void dev_ipc_server_process(struct dev_ipc_server *o)
{
    accept_clients(o);
    for (size_t i = 0; i < DEV_IPC_CLIENTS_MAX; i++)
        if (o->at[i].fd >= 0)
            read_request(o, &o->at[i]);
    for (size_t i = 0; i < DEV_IPC_CLIENTS_MAX; i++)
        if (o->at[i].fd >= 0 && o->at[i].reply.len)
            send_reply(&o->at[i]);
}
