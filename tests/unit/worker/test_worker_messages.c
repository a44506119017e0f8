/* SPDX-License-Identifier: Apache-2.0 */
/* Workers of one generation, in one thread: a message sent in one iteration is received in the next. */
#include "worker/worker_messages.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

#include "setup/plugins.h"
#include "setup/worker_channels.h"
#include "unit/test.h"
#include "worker/worker.h"

enum { WORKERS = 3, MESSAGE_MAX = 32 * 1024, WAITING_MAX = 1024 * 1024 };

static struct mk_config_generation g;
static struct receiver {
    struct mk_worker worker;
    char received[256];
    size_t n, bytes;
    int last; /* number at the beginning of the last long message */
} receiver[WORKERS];
static struct mk_log log_of_test;
static unsigned complaints;
static int answers;
static char too_large[MESSAGE_MAX + 1];
static unsigned fds_before;

static const struct mk_plugin plugin, deaf;

static void on_log(struct mk_log *log, enum mk_log_level level, mk_str text)
{
    (void)log, (void)level;
    assert_contains(text, "messages to worker 1 are lost: its queue is full");
    complaints++;
}

/* Long messages begin with a number, which must be larger than the number of the previous one. */
static void on_message(struct mk_worker *worker, mk_str message, void *data)
{
    struct receiver *e = MK_CONTAINER(worker, struct receiver, worker);
    assert_ptr_equal(data, &g);
    e->n++;
    e->bytes += message.len;
    if (message.len < sizeof e->received) {
        size_t len = strlen(e->received);
        snprintf(e->received + len, sizeof e->received - len, "%.*s ", MK_STR_ARG(message));
    } else {
        int number;
        memcpy(&number, message.p, sizeof number);
        assert_true(number > e->last);
        e->last = number;
    }
    if (answers-- > 0)
        (void)!mk_worker_send(worker, &plugin, MK_TO_ALL, MK_STR("answer"));
}

static const struct mk_plugin plugin = {MK_PLUGIN_HEAD, .name = "echo", .on_message = on_message};
static const struct mk_plugin deaf = {MK_PLUGIN_HEAD, .name = "deaf"};

/* Returns the number of open descriptors. The highest one does not tell, because lower ones may be free. */
static unsigned count_open(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void start_one(unsigned index)
{
    struct receiver *e = &receiver[index];
    *e = (struct receiver){.worker = {.generation = &g,
                                      .count = WORKERS,
                                      .index = index,
                                      .n_started = 2,
                                      .master_fd = -1,
                                      .web.log = &log_of_test}};
    assert_int_equal(mk_loop_init(&e->worker.loop), 0);
    mk_worker_messages_init(&e->worker);
    assert_int_equal(mk_worker_messages_start(&e->worker), 0);
}

static void stop_worker(unsigned index)
{
    mk_worker_messages_fini(&receiver[index].worker);
    mk_loop_fini(&receiver[index].worker.loop);
}

static void start_all(bool with_master)
{
    static struct mk_loaded_plugin loaded[] = {{.object.plugin = &deaf, .data = &g},
                                               {.object.plugin = &plugin, .data = &g}};
    fds_before = count_open();
    g = (struct mk_config_generation){
        .plugins_by_order = {&loaded[0], &loaded[1]}, .n_plugins = 2, .server.workers = WORKERS};
    mk_arena_init(&g.arena, NULL);
    answers = 0;
    complaints = 0;
    log_of_test = (struct mk_log){.level = MK_LOG_INFO, .write = on_log};
    if (with_master)
        assert_int_equal(mk_worker_channels_open(&g), 0);
    for (unsigned i = 0; i < WORKERS; i++)
        start_one(i);
}

static void setup(void)
{
    start_all(true);
}

static void setup_alone(void)
{
    start_all(false);
}

static void teardown(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        stop_worker(i);
    mk_worker_channels_close(&g);
    mk_arena_fini(&g.arena);
    assert_int_equal(count_open(), fds_before);
}

static struct mk_worker *worker(unsigned i)
{
    return &receiver[i].worker;
}

static void run_once(unsigned i)
{
    assert_int_equal(mk_loop_run_once(&worker(i)->loop, 0), 0);
}

static void check(unsigned i, const char *expected)
{
    run_once(i);
    assert_string_equal(receiver[i].received, expected);
}

static int send_to(unsigned from, unsigned to, const char *text)
{
    return mk_worker_send(worker(from), &plugin, to, mk_str_from_c(text));
}

static int send_much(unsigned from, unsigned to, size_t len)
{
    static int number;
    number++;
    memcpy(too_large, &number, sizeof number);
    return mk_worker_send(worker(from), &plugin, to, mk_str_of(too_large, len));
}

/* Discards the packets queued for worker `i`. Returns their number. */
static unsigned count_packets(unsigned i)
{
    unsigned n = 0;
    while (recv(g.worker_channels[i].receive_fd, too_large, sizeof too_large, MSG_DONTWAIT) > 0)
        n++;
    return n;
}

static void worker_messages_reach_their_receivers(void **state)
{
    (void)state;
    assert_int_equal(send_to(0, 1, "one"), 0);
    assert_int_equal(send_to(0, 0, "me"), 0);
    assert_int_equal(send_to(0, MK_TO_ALL, "all"), 0);
    assert_int_equal(send_to(0, 2, ""), 0);
    assert_string_equal(receiver[0].received, ""); /* sending never runs callbacks */
    check(0, "me all ");
    check(1, "one all ");
    check(2, "all  ");
    check(0, "me all ");
}

static void worker_messages_need_callback(void **state)
{
    (void)state;
    static const struct mk_plugin stranger = {MK_PLUGIN_HEAD, .name = "stranger", .on_message = on_message};
    assert_int_equal(mk_worker_send(worker(0), &deaf, MK_TO_ALL, MK_STR("x")), 0);
    assert_int_equal(mk_worker_send(worker(0), &stranger, MK_TO_ALL, MK_STR("x")), -EINVAL);
    worker(2)->n_started = 1; /* the plugin has not started yet */
    assert_int_equal(send_to(0, MK_TO_ALL, "y"), 0);
    check(0, "y ");
    check(1, "y ");
    check(2, "");
}

static void worker_messages_reply_is_received_in_next_iteration(void **state)
{
    (void)state;
    answers = 2;
    assert_int_equal(send_to(0, 0, "ask"), 0);
    check(0, "ask ");
    check(0, "ask answer ");
    check(1, "answer answer ");
}

static void worker_messages_invalid_arguments_are_rejected(void **state)
{
    (void)state;
    assert_int_equal(mk_worker_send(worker(0), &plugin, MK_TO_ALL, mk_str_of(too_large, sizeof too_large)),
                     -EMSGSIZE);
    assert_int_equal(send_to(0, WORKERS, "x"), -EINVAL);
    assert_int_equal(send_to(0, MK_TO_ALL - 1, "x"), -EINVAL);
    assert_int_equal(send_much(0, 1, MESSAGE_MAX), 0);
    run_once(0);
    run_once(1);
    assert_int_equal(receiver[1].bytes, MESSAGE_MAX);
}

/* ---- Packets ---- */

static void worker_messages_of_an_iteration_share_a_packet(void **state)
{
    (void)state;
    for (int i = 0; i < 160; i++)
        assert_int_equal(send_much(0, 1, 196), 0);
    assert_int_equal(count_packets(1), 0);
    run_once(0);
    assert_int_equal(count_packets(1), 1);
    for (int i = 0; i < 161; i++)
        assert_int_equal(send_much(0, 1, 196), 0);
    run_once(0);
    assert_int_equal(count_packets(1), 2);
    assert_int_equal(send_to(0, 1, "alone"), 0);
    run_once(0);
    assert_int_equal(count_packets(1), 1);
}

static void send_at_the_end(void *ctx)
{
    (void)ctx;
    assert_int_equal(send_to(0, 1, "late"), 0);
}

static void worker_messages_sent_at_iteration_end_leave_in_it(void **state)
{
    (void)state;
    struct mk_deferred *end = mk_deferred_new(worker(0), send_at_the_end, NULL);
    mk_deferred_post(end);
    run_once(0);
    check(1, "late ");
    mk_deferred_free(end);
}

/* A plugin may send a message before the loop runs, for example when it starts. */
static void worker_messages_sent_before_first_iteration_leave_in_it(void **state)
{
    (void)state;
    assert_int_equal(send_to(0, 1, "early"), 0);
    assert_int_equal(mk_loop_run_once(&worker(0)->loop, -1), 0); /* returns at once */
    check(1, "early ");
}

/* Each message arrives complete and in order, regardless of its size. */
static void worker_messages_of_any_size_arrive_complete(void **state)
{
    (void)state;
    size_t bytes = 0, n = 0;
    for (size_t len = 256; len <= MESSAGE_MAX; len += len < 4096 ? 97 : 4779) {
        assert_int_equal(send_much(0, 2, len), 0);
        bytes += len;
        n++;
        if (n % 5 == 0)
            run_once(0);
    }
    for (int i = 0; i < 100; i++) {
        run_once(0);
        run_once(2);
    }
    assert_int_equal(receiver[2].n, n);
    assert_int_equal(receiver[2].bytes, bytes);
}

/* An attacker may control another worker. */
static void worker_messages_malformed_packets_are_dropped(void **state)
{
    (void)state;
    static const mk_str bad[] = {
        MK_STR_INIT("x"),
        MK_STR_INIT("\5\0\0\0\1\0\0\0four"),
        MK_STR_INIT("\xff\xff\xff\xff\1\0\0\0"),
        MK_STR_INIT("\1\0\0\0\x40\0\0\0x"),
        MK_STR_INIT("\1\0\0\0\xff\xff\xff\xffx"),
    };
    for (size_t i = 0; i < MK_LEN(bad); i++)
        assert_true(send(g.worker_channels[1].send_fd, bad[i].p, bad[i].len, 0) > 0);
    assert_int_equal(send(g.worker_channels[1].send_fd, "", 0, 0), 0);
    check(1, "");
    assert_int_equal(send_to(0, 1, "good"), 0);
    run_once(0);
    check(1, "good ");
}

/* ---- Overload ---- */

static void fill(unsigned from, unsigned to)
{
    int e = 0;
    for (int i = 0; !e && i < 1000; i++) {
        e = send_much(from, to, MESSAGE_MAX);
        run_once(from);
    }
    assert_int_equal(e, -EAGAIN);
}

static void worker_messages_slow_receiver_gets_them_in_order(void **state)
{
    (void)state;
    fill(0, 1);
    struct mk_worker_message_queue *q = &worker(0)->mail.queues[1];
    assert_true(q->waits && q->records.len > WAITING_MAX - 2 * MESSAGE_MAX);
    assert_int_equal(send_to(0, 1, "last"), 0);  /* the message still fits into the queue */
    assert_int_equal(send_to(2, 1, "other"), 0); /* each sender has its own queue */
    run_once(2);
    assert_int_equal(send_to(0, 2, "third"), 0);
    run_once(0);
    check(2, "third ");
    for (int i = 0; i < 100; i++) {
        run_once(1);
        run_once(0);
        run_once(2);
    }
    assert_true(receiver[1].n > 32);
    assert_contains(mk_str_from_c(receiver[1].received), "last ");
    assert_contains(mk_str_from_c(receiver[1].received), "other ");
    assert_false(q->waits);
    assert_int_equal(q->records.len, 0);
    assert_null(q->records.p); /* the queue has freed the large buffer */
    assert_int_equal(complaints, 0);
}

static void worker_messages_broadcast_skips_slow_receivers(void **state)
{
    (void)state;
    fill(0, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(send_much(0, MK_TO_ALL, MESSAGE_MAX), 0);
    run_once(0);
    run_once(0);
    run_once(2);
    assert_int_equal(receiver[0].n, 3);
    assert_int_equal(receiver[2].n, 3);
    assert_int_equal(complaints, 1); /* the rate of warnings is limited */
    worker(0)->loop.now_ms += 60000;
    assert_int_equal(send_much(0, MK_TO_ALL, MESSAGE_MAX), 0);
    assert_int_equal(complaints, 2);
}

static void worker_messages_flood_in_one_iteration_is_rejected(void **state)
{
    (void)state;
    int n = 0;
    while (n < 100 && send_much(0, MK_TO_ALL, MESSAGE_MAX) == 0)
        n++;
    assert_int_equal(n, WAITING_MAX / (MESSAGE_MAX + 8));
    run_once(0);
    assert_int_equal(receiver[0].n, n); /* the rejected message has reached no worker */
    for (int i = 0; i < 10; i++) {
        run_once(1);
        run_once(2);
        run_once(0);
    }
    assert_int_equal(receiver[1].n, n);
    assert_int_equal(receiver[2].n, n);
}

/* ---- Starting and stopping ---- */

static void worker_messages_exiting_worker_receives_nothing(void **state)
{
    (void)state;
    answers = 1 << 20; /* a bound, in case the exchange does not end */
    assert_int_equal(send_to(0, 0, "ask"), 0);
    run_once(0);
    worker(0)->ending = true;
    mk_loop_run_tasks(&worker(0)->loop);
    assert_string_equal(receiver[0].received, "ask ");
    answers = 0;
    assert_int_equal(send_to(0, MK_TO_ALL, "bye"), 0);
    mk_loop_run_tasks(&worker(0)->loop);
    assert_string_equal(receiver[0].received, "ask ");
    check(1, "answer bye ");
}

static void worker_messages_successor_receives_queued(void **state)
{
    (void)state;
    assert_int_equal(send_to(0, 1, "a"), 0);
    run_once(0);
    stop_worker(1);
    assert_int_equal(send_to(0, 1, "b"), 0);
    run_once(0);
    start_one(1);
    check(1, "a b ");
}

/* Two workers have the same index, like a draining worker and its successor. */
static void worker_messages_replaced_worker_stops_receiving(void **state)
{
    (void)state;
    worker(2)->index = 1;
    mk_worker_messages_stop_receiving(worker(1));
    mk_worker_messages_stop_receiving(worker(1));
    mk_loop_remove(&worker(2)->loop, g.worker_channels[2].receive_fd);
    assert_int_equal(mk_worker_messages_start(worker(2)), 0);
    assert_int_equal(send_to(0, 1, "new"), 0);
    run_once(0);
    check(1, "");
    check(2, "new ");
    assert_int_equal(send_to(1, 1, "both"), 0);
    assert_int_equal(send_to(1, MK_TO_ALL, "all"), 0);
    check(1, "both all ");
    check(2, "new both all ");
    check(0, "all ");
}

/* ---- Without a master ---- */

static void worker_messages_without_master_reach_only_self(void **state)
{
    (void)state;
    assert_int_equal(send_to(1, MK_TO_ALL, "all"), -ENOTCONN);
    assert_int_equal(send_to(1, 1, "me"), -ENOTCONN);
    assert_int_equal(send_to(1, 0, "other"), -ENOTCONN);
    assert_int_equal(mk_worker_send(worker(1), &deaf, MK_TO_ALL, MK_STR("x")), -ENOTCONN);
    assert_string_equal(receiver[1].received, "");
    check(1, "all me ");
    check(1, "all me ");
    check(0, "");
    mk_worker_messages_stop_receiving(worker(1));
    worker(1)->master_fd = 0; /* with a master, the message is dropped without an error */
    assert_int_equal(send_to(1, 0, "other"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(worker_messages_reach_their_receivers, setup, teardown),
        fixture_test(worker_messages_need_callback, setup, teardown),
        fixture_test(worker_messages_reply_is_received_in_next_iteration, setup, teardown),
        fixture_test(worker_messages_invalid_arguments_are_rejected, setup, teardown),
        fixture_test(worker_messages_of_an_iteration_share_a_packet, setup, teardown),
        fixture_test(worker_messages_sent_at_iteration_end_leave_in_it, setup, teardown),
        fixture_test(worker_messages_sent_before_first_iteration_leave_in_it, setup, teardown),
        fixture_test(worker_messages_of_any_size_arrive_complete, setup, teardown),
        fixture_test(worker_messages_malformed_packets_are_dropped, setup, teardown),
        fixture_test(worker_messages_slow_receiver_gets_them_in_order, setup, teardown),
        fixture_test(worker_messages_broadcast_skips_slow_receivers, setup, teardown),
        fixture_test(worker_messages_flood_in_one_iteration_is_rejected, setup, teardown),
        fixture_test(worker_messages_exiting_worker_receives_nothing, setup, teardown),
        fixture_test(worker_messages_successor_receives_queued, setup, teardown),
        fixture_test(worker_messages_replaced_worker_stops_receiving, setup, teardown),
        fixture_test(worker_messages_without_master_reach_only_self, setup_alone, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
