/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/test_client/test_client.h"

#include <poll.h>

#include "base/mem.h"
#include "connection/accept_hooks.h"
#include "connection/client_limits.h"
#include "connection/conn_manager.h"
#include "connection/h1.h"
#include "connection/http2.h"
#include "lib/handle_registry.h"
#include "lib/last_error.h"
#include "lib/lib_worker.h"
#include "lib/test_client/h2_client.h"

enum { BYTES_MAX = 256 << 20 };

/* ---- The stream of the connection ---- */

static struct mk_test_client *client_of_end_hook(struct mk_end_hook *h)
{
    return MK_CONTAINER(h, struct mk_test_client, end_hook);
}

/* Called when the worker has ended, and with it the connection. */
static void on_worker_end(struct mk_end_hook *h)
{
    struct mk_test_client *p = client_of_end_hook(h);
    p->conn = NULL;
    p->server = NULL;
}

/* Searches all clients: a stream cannot store our pointer, and there are few clients. */
static struct mk_test_client *client_of_stream(struct mk_stream *s)
{
    struct mk_conn *c = MK_CONTAINER(s, struct mk_conn, stream);
    struct mk_end_hook *h = MK_CONTAINER(c->manager->worker, struct mk_lib_worker, worker)->end_hooks;
    while (h->run != on_worker_end || client_of_end_hook(h)->conn != c)
        h = h->next;
    return client_of_end_hook(h);
}

static ssize_t memory_read(struct mk_stream *s, char *buf, size_t cap)
{
    struct mk_test_client *p = client_of_stream(s);
    size_t n = mk_min(cap, p->sent.len);
    if (n == 0)
        return p->has_ended ? 0 : -EAGAIN;
    memcpy(buf, p->sent.p, n);
    mk_buf_consume(&p->sent, n);
    return (ssize_t)n;
}

static ssize_t memory_write(struct mk_stream *s, mk_str bytes, bool more)
{
    struct mk_test_client *p = client_of_stream(s);
    (void)more;
    if (!mk_buf_reserve(&p->received, bytes.len)) {
        p->received.failed = false;
        return -ENOMEM;
    }
    mk_buf_add(&p->received, bytes);
    return (ssize_t)bytes.len;
}

static void memory_shutdown(struct mk_stream *s)
{
    client_of_stream(s)->is_shut = true;
}

static void memory_close(struct mk_stream *s)
{
    struct mk_test_client *p = client_of_stream(s);
    p->is_shut = true;
    p->conn = NULL;
}

static const struct mk_stream_ops memory_ops = {
    .read = memory_read, .write = memory_write, .shutdown = memory_shutdown, .close = memory_close};

/* ---- Opening ---- */

static struct mk_lib_worker *worker_of_client(const struct mk_test_client *p)
{
    return &p->server->workers[0];
}

static void deliver_input(struct mk_loop_task *t)
{
    struct mk_test_client *p = MK_CONTAINER(t, struct mk_test_client, task);
    p->task_set = false;
    if (p->conn)
        p->conn->watch.on_ready(&p->conn->watch, EPOLLIN | EPOLLOUT | (p->has_ended ? EPOLLRDHUP : 0u));
}

static void schedule_delivery(struct mk_test_client *p)
{
    if (p->task_set || !p->conn)
        return;
    p->task_set = true;
    mk_loop_defer(&worker_of_client(p)->worker.loop, &p->task);
}

static void free_http2_client(struct mk_test_client *p)
{
    if (p->client)
        p->http2->free(p->client);
    p->client = NULL;
}

mk_err mk_test_client_reconnect(struct mk_test_client *p)
{
    struct mk_conn_manager *s = &worker_of_client(p)->worker.manager;
    struct mk_addr peer;
    bool has_door = s->n_accept_hooks;
    if (p->conn) /* after an error response the connection lingers: a new one replaces it */
        mk_conn_close(p->conn, MK_OUTCOME_CLIENT_ABORTED);
    (void)mk_addr_parse(MK_STR("127.0.0.1"), &peer);
    mk_err e = has_door ? 0 : mk_client_limits_acquire(&s->peers, &peer);
    if (e)
        return e == -EDQUOT ? -ECONNRESET : e;
    struct mk_conn *c = mk_conn_open(s, has_door ? &mk_accept_hooks_ops : &mk_h1_ops, -1, &peer);
    if (!c) {
        if (!has_door)
            mk_client_limits_release(&s->peers, &peer);
        return -ENOMEM;
    }
    c->admission = has_door ? MK_CONN_NOT_COUNTED : MK_CONN_COUNTED;
    c->stream.ops = &memory_ops;
    c->watched = true; /* polled by us, not by the loop */
    p->conn = c;
    p->has_ended = p->is_shut = false;
    free_http2_client(p);
    mk_buf_clear(&p->sent);
    mk_buf_clear(&p->received);
    return 0;
}

static mk_err check_server_is_running(struct mk_server *s)
{
    if (mk_lib_worker_is_in_call(s))
        return mk_last_error_set_misuse(s, "a test client was opened by the server itself");
    int fd = mk_server_fd(s);
    return fd < 0                          ? fd
           : s->phase != MK_SERVER_RUNNING ? mk_last_error_set(s, -ESHUTDOWN, "the server has ended")
                                           : 0;
}

struct mk_test_client *mk_test_client_open(struct mk_server *s)
{
    int before MK_KEEP_ERRNO = errno;
    if (!mk_handle_is_valid(s) || check_server_is_running(s))
        return NULL;
    struct mk_test_client *p = mk_mem_zalloc(1, sizeof *p);
    if (!p || !mk_handle_register(p)) {
        mk_mem_free(p);
        (void)mk_last_error_set_code(s, -ENOMEM);
        return NULL;
    }
    *p = (struct mk_test_client){.server = s,
                                 .end_hook = {.run = on_worker_end},
                                 .task = {.run = deliver_input},
                                 .sent = mk_buf_growing(BYTES_MAX),
                                 .received = mk_buf_growing(BYTES_MAX),
                                 .head = mk_buf_growing(BYTES_MAX),
                                 .content = mk_buf_growing(BYTES_MAX)};
    mk_lib_worker_add_end_hook(&s->workers[0], &p->end_hook);
    mk_err e = mk_test_client_reconnect(p);
    if (!e)
        return p;
    (void)mk_last_error_set_code(s, e);
    mk_test_client_close(p);
    return NULL;
}

int mk_test_client_use_http2(struct mk_test_client *p)
{
    int before MK_KEEP_ERRNO = errno;
    if (!mk_handle_is_valid(p))
        return -EINVAL;
    if (!p->server || p->server->phase != MK_SERVER_RUNNING)
        return -ESHUTDOWN;
    if (mk_lib_worker_is_in_call(p->server))
        return -EBUSY;
    struct mk_conn_manager *s = &worker_of_client(p)->worker.manager;
    if (!s->limits->h2.on || !s->http2)
        return -EOPNOTSUPP;
    if (p->http2)
        return 0;
    p->http2 = &mk_h2_client_ops;
    if (p->conn)
        mk_conn_close(p->conn, MK_OUTCOME_CLIENT_ABORTED); /* the connection may have used HTTP/1.1 */
    return 0;
}

/* ---- Stepping ---- */

int mk_test_client_send(struct mk_test_client *p, mk_str bytes)
{
    if (!mk_handle_is_valid(p))
        return -EINVAL;
    if (!p->server || !p->conn)
        return -ECONNRESET;
    if (!mk_buf_reserve(&p->sent, bytes.len)) {
        p->sent.failed = false;
        return -ENOMEM;
    }
    mk_buf_add(&p->sent, bytes);
    schedule_delivery(p);
    return 0;
}

int mk_test_client_step(struct mk_test_client *p, uint32_t timeout_ms)
{
    int before MK_KEEP_ERRNO = errno;
    if (!mk_handle_is_valid(p))
        return -EINVAL;
    if (!p->server)
        return -ESHUTDOWN;
    if (mk_lib_worker_is_in_call(p->server))
        return -EBUSY;
    struct pollfd ready = {.fd = mk_server_fd(p->server), .events = POLLIN};
    (void)poll(&ready, 1, (int)mk_min(timeout_ms, (uint32_t)INT32_MAX));
    int e = mk_server_step(p->server);
    return e == 0 ? -ESHUTDOWN : e < 0 ? e : p->conn != NULL;
}

mk_str mk_test_client_received(const struct mk_test_client *p)
{
    return mk_handle_is_valid(p) ? mk_buf_str(&p->received) : MK_STR_NULL;
}

/* ---- Closing ---- */

/* Waits for a scheduled task, which cannot be cancelled: it runs before the memory is freed. */
static void detach_from_server(struct mk_test_client *p)
{
    if (p->conn)
        mk_conn_close(p->conn, MK_OUTCOME_CLIENT_ABORTED);
    if (p->task_set)
        (void)mk_server_step(p->server);
    mk_lib_worker_remove_end_hook(worker_of_client(p), &p->end_hook);
}

void mk_test_client_close(struct mk_test_client *p)
{
    int before MK_KEEP_ERRNO = errno;
    if (!mk_handle_is_valid(p) || (p->server && mk_lib_worker_is_in_call(p->server)))
        return;
    mk_handle_unregister(p);
    if (p->server)
        detach_from_server(p);
    free_http2_client(p);
    mk_buf_free(&p->sent);
    mk_buf_free(&p->received);
    mk_buf_free(&p->head);
    mk_buf_free(&p->content);
    mk_mem_free(p);
}
