/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker_messages.h"

#include <monkey/worker.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/mem.h"
#include "setup/plugins.h"

/* Precedes each message, in packets and in queues. */
struct message_head {
    uint32_t len;
    uint32_t plugin; /* index of the plugin, the same in all workers */
};

enum {
    MESSAGE_MAX = 32 * 1024,
    PACKET_MAX = sizeof(struct message_head) + MESSAGE_MAX,
    PACKETS_MAX = 16, /* received per iteration */
    WAITING_MAX = 1024 * 1024,
    KEPT_MAX = 2 * PACKET_MAX, /* an empty queue frees memory above this size */
    COMPLAIN_AGAIN_MS = 60000
};

static struct mk_worker_channel *channel_of(const struct mk_worker_message_queue *q)
{
    return &q->worker->generation->worker_channels[q - q->worker->mail.queues];
}

/* Removes the first message. False: it is incomplete. */
static bool pop_message(mk_str *records, struct message_head *message_head, mk_str *message)
{
    if (records->len < sizeof *message_head)
        return false;
    memcpy(message_head, records->p, sizeof *message_head);
    mk_str rest = mk_str_skip(*records, sizeof *message_head);
    *message = mk_str_first(rest, message_head->len);
    *records = mk_str_skip(rest, message_head->len);
    return message->len == message_head->len;
}

/* ---- Receiving ---- */

/* Delivers the messages of a packet. Stops at an incomplete message, which a compromised worker may have
 * sent. */
static void deliver_messages(struct mk_worker *w, mk_str records)
{
    struct message_head message_head;
    mk_str message;
    while (!w->ending && pop_message(&records, &message_head, &message)) {
        const struct mk_loaded_plugin *l =
            message_head.plugin < w->n_started ? mk_plugins_at(w->generation, message_head.plugin) : NULL;
        if (l && l->object.plugin->on_message)
            l->object.plugin->on_message(w, message, l->data);
    }
}

static void on_messages_arrived(struct mk_fd_watch *watch, uint32_t events)
{
    struct mk_worker *w = MK_CONTAINER(watch, struct mk_worker, mail.arrival);
    char buf[PACKET_MAX];
    ssize_t n = 1;
    (void)events;
    /* Leaves the rest for the next iteration, because connections are waiting. */
    for (int i = 0; i < PACKETS_MAX && n > 0 && !w->mail.replaced; i++) {
        n = recv(w->generation->worker_channels[w->index].receive_fd, buf, sizeof buf, MSG_DONTWAIT);
        deliver_messages(w, mk_str_of(buf, n > 0 ? (size_t)n : 0));
    }
}

static void deliver_own_messages(struct mk_loop_task *t)
{
    struct mk_worker *w = MK_CONTAINER(t, struct mk_worker, mail.hear);
    struct mk_buf *own = &w->mail.queues[w->count].records, records = *own;
    *own = mk_buf_growing(WAITING_MAX); /* messages sent from now on are delivered in the next iteration */
    w->mail.hears = false;
    deliver_messages(w, mk_buf_str(&records));
    mk_buf_free(&records);
}

/* ---- Sending ---- */

static void warn_of_lost_messages(struct mk_worker_message_queue *q, mk_err error)
{
    uint64_t now = q->worker->loop.now_ms;
    if (q->warned_ms && now - q->warned_ms < COMPLAIN_AGAIN_MS)
        return;
    q->warned_ms = now;
    mk_log_warn(q->worker->web.log, "messages to worker %u are lost: %s",
                (unsigned)(q - q->worker->mail.queues),
                error == -EAGAIN ? "its queue is full" : mk_err_text(error));
}

static void watch_channel_writable(struct mk_worker_message_queue *q, bool expected)
{
    struct mk_loop *loop = &q->worker->loop;
    mk_err e = 0;
    if (expected == q->waits)
        return;
    if (!expected)
        mk_loop_remove(loop, channel_of(q)->send_fd);
    else if ((e = mk_loop_add(loop, channel_of(q)->send_fd, &q->writable_watch, EPOLLOUT)))
        warn_of_lost_messages(q, e);
    if (e)
        mk_buf_free(&q->records);
    else
        q->waits = expected;
}

/* Returns as many messages as fit into a packet, but at least one. */
static mk_str first_packet_of(mk_str records)
{
    mk_str rest = records, message;
    struct message_head message_head;
    size_t len = 0;
    while (records.len - rest.len <= PACKET_MAX && (len = records.len - rest.len) < records.len)
        (void)pop_message(&rest, &message_head, &message);
    return mk_str_first(records, len);
}

static void flush_queue(struct mk_worker_message_queue *q)
{
    mk_str rest = mk_buf_str(&q->records);
    mk_err e = 0;
    while (rest.len && e != -EAGAIN) {
        mk_str packet = first_packet_of(rest);
        e = send(channel_of(q)->send_fd, packet.p, packet.len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0
                ? mk_err_last()
                : 0;
        if (e && e != -EAGAIN)
            warn_of_lost_messages(q, e);
        rest = mk_str_skip(rest, e == -EAGAIN ? 0 : packet.len);
    }
    mk_buf_consume(&q->records, q->records.len - rest.len);
    if (!rest.len && q->records.cap > KEPT_MAX)
        mk_buf_free(&q->records);
    watch_channel_writable(q, rest.len > 0);
}

static void on_channel_writable(struct mk_fd_watch *watch, uint32_t events)
{
    (void)events;
    flush_queue(MK_CONTAINER(watch, struct mk_worker_message_queue, writable_watch));
}

static void flush_queues(struct mk_loop_task *t)
{
    struct mk_worker *w = MK_CONTAINER(t, struct mk_worker, mail.send);
    w->mail.sends = false;
    for (unsigned i = 0; i < w->count; i++)
        if (w->mail.queues[i].records.len && !w->mail.queues[i].waits)
            flush_queue(&w->mail.queues[i]);
}

/* ---- Plugin API ---- */

static mk_err enqueue_message(struct mk_worker_message_queue *q, const struct message_head *message_head,
                              mk_str message)
{
    if (q->records.len + sizeof *message_head + message.len > WAITING_MAX)
        return -EAGAIN;
    if (!mk_buf_reserve(&q->records, sizeof *message_head + message.len)) {
        q->records.failed = false;
        return -ENOMEM;
    }
    mk_buf_add(&q->records, mk_str_of((const char *)message_head, sizeof *message_head));
    mk_buf_add(&q->records, message);
    return 0;
}

static mk_err enqueue_to_own(struct mk_worker *w, const struct message_head *message_head, mk_str message)
{
    mk_err e = w->ending ? 0 : enqueue_message(&w->mail.queues[w->count], message_head, message);
    if (!e && !w->ending && !w->mail.hears) {
        w->mail.hears = true;
        mk_loop_defer(&w->loop, &w->mail.hear);
    }
    return e;
}

static mk_err enqueue_to_worker(struct mk_worker *w, unsigned to, const struct message_head *message_head,
                                mk_str message)
{
    mk_err e = enqueue_message(&w->mail.queues[to], message_head, message);
    if (!e && !w->mail.sends) {
        w->mail.sends = true;
        mk_loop_defer_last(&w->loop, &w->mail.send);
    }
    return e;
}

static mk_err alloc_queues(struct mk_worker *w)
{
    struct mk_worker_messages *m = &w->mail;
    if (m->queues)
        return 0;
    m->queues = mk_mem_alloc((w->count + 1) * sizeof *m->queues);
    for (unsigned i = 0; m->queues && i <= w->count; i++)
        m->queues[i] = (struct mk_worker_message_queue){.worker = w,
                                                        .writable_watch = {.on_ready = on_channel_writable},
                                                        .records = mk_buf_growing(WAITING_MAX)};
    return m->queues ? 0 : -ENOMEM;
}

/* Queues a message for one worker, or for all other workers. Workers whose queues are full miss the
 * message. */
static void enqueue_to_others(struct mk_worker *w, unsigned to, const struct message_head *message_head,
                              mk_str message)
{
    for (unsigned i = 0; i < w->generation->n_worker_channels; i++) {
        bool is_other = i != w->index || w->mail.replaced;
        mk_err e =
            is_other && (to == MK_TO_ALL || to == i) ? enqueue_to_worker(w, i, message_head, message) : 0;
        if (e)
            warn_of_lost_messages(&w->mail.queues[i], e);
    }
}

int mk_worker_send(struct mk_worker *w, const struct mk_plugin *plugin, unsigned to, mk_str message)
{
    size_t index = mk_plugins_index_of(w->generation, plugin);
    const struct message_head message_head = {.len = (uint32_t)message.len, .plugin = (uint32_t)index};
    bool is_connected = w->generation->n_worker_channels || w->master_fd >= 0;
    if (message.len > MESSAGE_MAX)
        return -EMSGSIZE;
    if (index == w->generation->n_plugins || (to != MK_TO_ALL && to >= w->count))
        return -EINVAL;
    mk_err e = alloc_queues(w);
    if (!e && to != MK_TO_ALL && to != w->index)
        e = w->generation->n_worker_channels ? enqueue_to_worker(w, to, &message_head, message) : 0;
    else if (!e && !(e = enqueue_to_own(w, &message_head, message)))
        enqueue_to_others(w, to, &message_head, message);
    return e || is_connected ? e : -ENOTCONN;
}

/* ---- Lifetime ---- */

void mk_worker_messages_init(struct mk_worker *w)
{
    w->mail = (struct mk_worker_messages){.arrival = {.on_ready = on_messages_arrived},
                                          .send = {.run = flush_queues},
                                          .hear = {.run = deliver_own_messages}};
}

mk_err mk_worker_messages_start(struct mk_worker *w)
{
    MK_ASSERT(!w->generation->n_worker_channels || w->generation->n_worker_channels == w->count);
    return w->generation->n_worker_channels
               ? mk_loop_add(&w->loop, w->generation->worker_channels[w->index].receive_fd, &w->mail.arrival,
                             EPOLLIN)
               : 0;
}

void mk_worker_messages_stop_receiving(struct mk_worker *w)
{
    if (w->generation->n_worker_channels && !w->mail.replaced)
        mk_loop_remove(&w->loop, w->generation->worker_channels[w->index].receive_fd);
    w->mail.replaced = true;
}

void mk_worker_messages_fini(struct mk_worker *w)
{
    for (unsigned i = 0; w->mail.queues && i <= w->count; i++)
        mk_buf_free(&w->mail.queues[i].records);
    mk_mem_free(w->mail.queues);
}
