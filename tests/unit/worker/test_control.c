/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/control.h"

#include <fcntl.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/fd_passing.h"
#include "unit/fixtures.h"
#include "unit/test.h"

static int master, worker;
static struct mk_control_buffer buffer;
static struct mk_control_message m;

static void setup(void)
{
    memset(&m, 0xff, sizeof m);
    fd_setup(&master);
    fd_setup(&worker);
    assert_int_equal(mk_control_open(&master, &worker), 0);
}

static mk_err send_log(int end, mk_str where, int fd)
{
    return mk_control_send(end,
                           &(struct mk_control_message){.kind = MK_CONTROL_LOG, .text = where, .fd = fd});
}

static void control_message_without_text_arrives(void **state)
{
    (void)state;
    assert_int_equal(mk_control_receive(master, &buffer, &m), -EAGAIN);
    assert_int_equal(mk_control_send_kind(worker, MK_CONTROL_READY), 0);
    assert_int_equal(mk_control_receive(master, &buffer, &m), 0);
    assert_int_equal(m.kind, MK_CONTROL_READY);
    assert_str(m.text, "");
    assert_int_equal(m.fd, -1);
    assert_int_equal(mk_control_receive(master, &buffer, &m), -EAGAIN);
}

static void control_messages_stay_separate(void **state)
{
    (void)state;
    assert_int_equal(send_log(master, MK_STR("one"), -1), 0);
    assert_int_equal(send_log(master, MK_STR("two"), -1), 0);
    assert_int_equal(mk_control_receive(worker, &buffer, &m), 0);
    assert_str(m.text, "one");
    assert_int_equal(mk_control_receive(worker, &buffer, &m), 0);
    assert_str(m.text, "two");
}

static void control_message_carries_descriptor(void **state)
{
    (void)state;
    int ends[2];
    char byte[8];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(send_log(master, MK_STR("/var/log/x"), ends[1]), 0);
    close(ends[1]);
    assert_int_equal(mk_control_receive(worker, &buffer, &m), 0);
    assert_int_equal(m.kind, MK_CONTROL_LOG);
    assert_str(m.text, "/var/log/x");
    assert_true(m.fd >= 0);
    assert_true(fcntl(m.fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(m.fd, "hello", 5), 5);
    assert_int_equal(read(ends[0], byte, sizeof byte), 5);
    close(m.fd);
    assert_int_equal(read(ends[0], byte, sizeof byte), 0); /* no other process has the descriptor */
    close(ends[0]);
}

static void control_message_carries_text_and_number(void **state)
{
    (void)state;
    const struct mk_control_message sent = {
        .kind = MK_CONTROL_ROTATE, .number = -1, .text = MK_STR("a\0b"), .fd = -1};
    assert_int_equal(mk_control_send(worker, &sent), 0);
    assert_int_equal(mk_control_receive(master, &buffer, &m), 0);
    assert_int_equal(m.kind, MK_CONTROL_ROTATE);
    assert_int_equal(m.number, -1);
    assert_true(mk_str_eq(m.text, MK_STR("a\0b")));
}

static void control_message_text_is_limited(void **state)
{
    (void)state;
    static char text[MK_CONTROL_TEXT + 1];
    memset(text, 'x', sizeof text);
    struct mk_control_message sent = {
        .kind = MK_CONTROL_ROTATE, .text = mk_str_of(text, sizeof text), .fd = -1};
    assert_int_equal(mk_control_send(master, &sent), -EMSGSIZE);
    assert_int_equal(mk_control_receive(worker, &buffer, &m), -EAGAIN);
    sent.text.len = MK_CONTROL_TEXT;
    assert_int_equal(mk_control_send(master, &sent), 0);
    assert_int_equal(mk_control_receive(worker, &buffer, &m), 0);
    assert_int_equal(m.text.len, MK_CONTROL_TEXT);
}

/* An attacker may control the other end. */
static void control_malformed_message_is_skipped(void **state)
{
    (void)state;
    static const mk_str bad[] = {MK_STR_INIT("x"), MK_STR_INIT("\xff\0\0\0\0\0\0\0"),
                                 MK_STR_INIT("\1\0\0\1\0\0\0\0four")};
    static char big[sizeof buffer + 1];
    unsigned before = mk_fd_count_open();
    for (size_t i = 0; i < MK_LEN(bad); i++) {
        const struct iovec v = {.iov_base = (void *)(uintptr_t)bad[i].p, .iov_len = bad[i].len};
        assert_int_equal(mk_fd_passing_send(worker, &v, 1, (int[]){1, 2, 1}, 3), 0);
        assert_int_equal(mk_control_receive(master, &buffer, &m), -EBADMSG);
    }
    const struct iovec v = {.iov_base = big, .iov_len = sizeof big};
    assert_int_equal(mk_fd_passing_send(worker, &v, 1, NULL, 0), 0);
    assert_int_equal(mk_control_receive(master, &buffer, &m), -EBADMSG);
    assert_int_equal(mk_fd_count_open(), before);
    assert_int_equal(mk_control_send_kind(worker, MK_CONTROL_READY), 0);
    assert_int_equal(mk_control_receive(master, &buffer, &m), 0);
}

static void control_closed_peer_is_noticed(void **state)
{
    (void)state;
    assert_int_equal(mk_control_send_kind(worker, MK_CONTROL_READY), 0);
    mk_fd_close(&worker);
    assert_int_equal(mk_control_receive(master, &buffer, &m),
                     0); /* the receiver still gets earlier messages */
    assert_int_equal(mk_control_receive(master, &buffer, &m), -EPIPE);
    assert_int_equal(send_log(master, MK_STR("x"), -1), -EPIPE);
}

static void control_send_never_blocks(void **state)
{
    (void)state;
    mk_err e = 0;
    for (int i = 0; i < 100000 && !e; i++)
        e = send_log(master, MK_STR("x"), -1);
    assert_int_equal(e, -EAGAIN);
    assert_true(fcntl(master, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(worker, F_GETFD) & FD_CLOEXEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(control_message_without_text_arrives, setup),
        fixture_test(control_messages_stay_separate, setup),
        fixture_test(control_message_carries_descriptor, setup),
        fixture_test(control_message_carries_text_and_number, setup),
        fixture_test(control_message_text_is_limited, setup),
        fixture_test(control_malformed_message_is_skipped, setup),
        fixture_test(control_closed_peer_is_noticed, setup),
        fixture_test(control_send_never_blocks, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
