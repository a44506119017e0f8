/* SPDX-License-Identifier: Apache-2.0 */
/* Workers send messages to each other continuously and check what they receive. After `GET /messages?N`, each
 * worker sends N messages per loop iteration. The response counts, over all workers and configurations of
 * this server, the messages that were sent (once per receiver), refused, received, and wrong: truncated,
 * mixed up, duplicated or meant for another worker. */
#include <errno.h>
#include <monkey/plugin.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SENDERS_MAX = 256, IDLE_MS = 20, SIZE_MAX_ = 32 * 1024 };

struct settings {
    uint64_t size;
    uint32_t senders;
    bool mix, all;
};

/* Totals of all workers. */
struct counts {
    atomic_uint_least64_t pace, sent, refused, received, wrong, configurations;
};

struct load_state {
    const struct settings *settings;
    struct counts *counts;
    uint64_t configuration;
};

struct head {
    int64_t master, pid;
    uint64_t configuration, number;
    uint32_t to;
};

struct sender {
    struct mk_worker *worker;
    struct load_state *state;
    struct mk_watcher *watcher; /* watches a descriptor that is always ready */
    struct mk_timer timer;
    int fd;
    bool is_sending;
    uint64_t number, random;
    struct {
        int64_t pid;
        uint64_t last;
    } peers[SENDERS_MAX];
    char text[SIZE_MAX_];
};

static const struct mk_conf_key keys[] = {
    {.name = "Size", .type = MK_CONF_SIZE, MK_CONF_AT(struct settings, size), .default_value = "200"},
    {.name = "Senders", .type = MK_CONF_NUM, MK_CONF_AT(struct settings, senders), .default_value = "1000"},
    {.name = "All", .type = MK_CONF_BOOL, MK_CONF_AT(struct settings, all), .default_value = "on"},
    {.name = "Mix", .type = MK_CONF_BOOL, MK_CONF_AT(struct settings, mix), .default_value = "on"},
};

static const struct mk_conf_table table = {
    .section = "MESSAGE_LOAD", .keys = keys, .n = 4, .size = sizeof(struct settings)};

extern MK_API const struct mk_plugin mk_plugin;

static uint64_t draw(struct sender *s, uint64_t below)
{
    s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (s->random >> 33) % below;
}

static char byte_at(const struct head *h, size_t i)
{
    return (char)((uint64_t)h->pid + h->number * 31 + i * 7);
}

static int send_message(struct sender *s, unsigned to, size_t size)
{
    struct head h;
    memset(&h, 0, sizeof h);
    h.master = mk_worker_master_pid(s->worker);
    h.pid = gettid();
    h.configuration = s->state->configuration;
    h.number = ++s->number;
    h.to = to;
    memcpy(s->text, &h, sizeof h);
    for (size_t i = sizeof h; s->state->settings->mix && i < size; i++)
        s->text[i] = byte_at(&h, i);
    return mk_worker_send(s->worker, &mk_plugin, to, (mk_str){s->text, size});
}

/* Sends to another worker; with `mix` also to itself and, if configured, to all workers, in sizes from the
 * smallest to the largest. */
static int send_next_message(struct sender *s)
{
    unsigned n = mk_worker_count(s->worker), self = mk_worker_index(s->worker);
    const struct settings *settings = s->state->settings;
    unsigned to = (unsigned)((self + 1 + draw(s, n > 1 ? n - 1 : 1)) % n);
    size_t size = settings->size;
    if (settings->mix && draw(s, 8) == 0)
        to = settings->all && draw(s, 2) ? MK_TO_ALL : self;
    if (settings->mix)
        size = draw(s, 64) ? sizeof(struct head) + draw(s, size) : SIZE_MAX_ - draw(s, 64);
    int e = send_message(s, to, size);
    if (e == 0)
        s->state->counts->sent += to == MK_TO_ALL ? n : 1;
    return e;
}

static void send_batch(struct sender *s)
{
    uint64_t pace = s->state->counts->pace;
    if (mk_worker_index(s->worker) >= s->state->settings->senders)
        pace = 0;
    for (uint64_t i = 0; i < pace; i++)
        if (send_next_message(s)) {
            s->state->counts->refused++;
            break;
        }
    if (s->is_sending != (pace > 0) && !mk_watcher_change(s->watcher, pace ? MK_READABLE | MK_LEVEL : 0))
        s->is_sending = pace > 0;
    if (!s->is_sending)
        mk_timer_set(&s->timer, s->worker, IDLE_MS);
}

static void on_ready(void *ctx, unsigned which)
{
    (void)which;
    send_batch(ctx);
}

static void on_time(struct mk_timer *t)
{
    send_batch(MK_CONTAINER(t, struct sender, timer));
}

static bool is_intact(struct sender *s, mk_str message)
{
    struct head h;
    size_t i = 0;
    if (message.len < sizeof h)
        return false;
    memcpy(&h, message.p, sizeof h);
    while (i < SENDERS_MAX && s->peers[i].pid && s->peers[i].pid != h.pid)
        i++;
    if (i == SENDERS_MAX || h.master != mk_worker_master_pid(s->worker) ||
        h.configuration != s->state->configuration || h.number <= s->peers[i].last ||
        (h.to != MK_TO_ALL && h.to != mk_worker_index(s->worker)))
        return false;
    s->peers[i].pid = h.pid;
    s->peers[i].last = h.number;
    for (size_t k = sizeof h; s->state->settings->mix && k < message.len; k++)
        if (message.p[k] != byte_at(&h, k))
            return false;
    return true;
}

static void on_message(struct mk_worker *w, mk_str message, void *data)
{
    struct load_state *state = data;
    if (!is_intact(mk_worker_data(w, &mk_plugin), message))
        state->counts->wrong++;
    state->counts->received++;
}

static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
{
    struct load_state *state = mk_vhost_data(mk_request_vhost(request), &mk_plugin);
    struct counts *c = state->counts;
    char text[256];
    uint64_t pace;
    (void)data;
    if (mk_num_parse(mk_request_query(request), &pace))
        c->pace = pace;
    int n = snprintf(text, sizeof text, "%llu %llu %llu %llu", (unsigned long long)c->sent,
                     (unsigned long long)c->refused, (unsigned long long)c->received,
                     (unsigned long long)c->wrong);
    mk_response_set_body(response, (mk_str){text, (size_t)n});
    return MK_DONE;
}

static int load(struct mk_config *c, void **data)
{
    struct load_state *state = mk_config_alloc(c, sizeof *state);
    if (!state)
        return -ENOMEM;
    *data = state;
    state->settings = mk_config_settings(c, &table);
    state->counts = mk_config_shared(c, "message_load", sizeof *state->counts);
    if (!state->settings || !state->counts)
        return -ENOMEM;
    state->configuration = ++state->counts->configurations;
    return 0;
}

static int start(struct mk_worker *w, void *data)
{
    struct sender *s = mk_mem_zalloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    *s = (struct sender){.worker = w, .state = data, .random = (uint64_t)gettid()};
    s->fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    s->watcher = mk_watcher_new(w, s->fd, 0, on_ready, s);
    mk_timer_init(&s->timer, on_time);
    mk_worker_set_data(w, &mk_plugin, s);
    if (!s->watcher)
        return -ENOMEM;
    send_batch(s);
    return 0;
}

static void stop(struct mk_worker *w, void *data)
{
    (void)data;
    struct sender *s = mk_worker_data(w, &mk_plugin);
    mk_watcher_free(s->watcher);
    close(s->fd);
    mk_timer_stop(&s->timer);
    mk_mem_free(s);
}

static const struct mk_handler message_load_handler = {
    .name = "message-load", .methods = MK_METHOD_BIT(MK_METHOD_GET), .handle = handle};

MK_PLUGIN(message_load) = {
    MK_PLUGIN_HEAD,
    .name = "message-load",
    .version = "1",
    .help = "For tests.",
    .sections = (const struct mk_conf_table *const[]){&table, NULL},
    .handlers = (const struct mk_handler *const[]){&message_load_handler, NULL},
    .load = load,
    .worker_start = start,
    .worker_stop = stop,
    .on_message = on_message,
};
