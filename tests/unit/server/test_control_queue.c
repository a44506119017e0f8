/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control_queue.h"

#include <unistd.h>

#include "os/fd.h"
#include "unit/fixtures.h"
#include "unit/test.h"

static int master, worker;
static struct mk_control_queue box;
static struct mk_control_buffer buffer;
static struct mk_control_message m;
static char large_text[MK_CONTROL_TEXT];

static void setup(void)
{
    fd_setup(&master);
    fd_setup(&worker);
    box = (struct mk_control_queue){0};
    assert_int_equal(mk_control_open(&master, &worker), 0);
}

static void teardown(void)
{
    mk_control_queue_clear(&box);
}

static mk_err send_number(int number, size_t len)
{
    const struct mk_control_message out = {
        .kind = MK_CONTROL_LOG_LEVEL, .number = number, .text = mk_str_of(large_text, len), .fd = -1};
    return mk_control_queue_send(&box, master, &out);
}

static void control_queue_sends_at_once_if_possible(void **state)
{
    (void)state;
    assert_int_equal(send_number(1, 0), 0);
    assert_null(box.first);
    assert_int_equal(mk_control_receive(worker, &buffer, &m), 0);
    assert_int_equal(mk_control_queue_flush(&box, master), 0);
}

static void control_queue_keeps_order_when_socket_is_full(void **state)
{
    (void)state;
    int sent = 0, got = 0;
    while (!box.first)
        assert_int_equal(send_number(sent++, sizeof large_text), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(send_number(sent++, 1), 0); /* these would fit, but must not overtake the others */
    assert_int_equal(mk_control_queue_flush(&box, master), -EAGAIN);
    while (got < sent) {
        mk_err e = mk_control_receive(worker, &buffer, &m);
        if (e == -EAGAIN)
            e = mk_control_queue_flush(&box, master);
        else
            assert_int_equal(m.number, got++);
        assert_true(e == 0 || e == -EAGAIN);
    }
    assert_null(box.first);
}

static void control_queue_keeps_descriptors(void **state)
{
    (void)state;
    int ends[2];
    char byte;
    unsigned before = mk_fd_count_open();
    assert_int_equal(pipe(ends), 0);
    while (!box.first)
        assert_int_equal(send_number(0, sizeof large_text), 0);
    const struct mk_control_message log = {.kind = MK_CONTROL_LOG, .text = MK_STR("log"), .fd = ends[1]};
    assert_int_equal(mk_control_queue_send(&box, master, &log), 0);
    mk_fd_close(&ends[1]);
    for (m.kind = MK_CONTROL_NONE; m.kind != MK_CONTROL_LOG;)
        if (mk_control_receive(worker, &buffer, &m) == -EAGAIN)
            (void)!mk_control_queue_flush(&box, master);
    assert_int_equal(write(m.fd, "x", 1), 1);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    mk_fd_close(&m.fd);
    mk_fd_close(&ends[0]);
    assert_int_equal(mk_fd_count_open(), before);
}

static void control_queue_drops_messages_without_receiver(void **state)
{
    (void)state;
    unsigned before = mk_fd_count_open();
    while (!box.first)
        assert_int_equal(send_number(0, sizeof large_text), 0);
    const struct mk_control_message log = {.kind = MK_CONTROL_LOG, .text = MK_STR("log"), .fd = 2};
    assert_int_equal(mk_control_queue_send(&box, master, &log), 0);
    assert_int_equal(mk_fd_count_open(), before + 1);
    mk_fd_close(&worker);
    assert_int_equal(mk_control_queue_flush(&box, master), 0); /* no process receives messages anymore */
    assert_null(box.first);
    mk_control_queue_clear(&box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(control_queue_sends_at_once_if_possible, setup, teardown),
        fixture_test(control_queue_keeps_order_when_socket_is_full, setup, teardown),
        fixture_test(control_queue_keeps_descriptors, setup, teardown),
        fixture_test(control_queue_drops_messages_without_receiver, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
