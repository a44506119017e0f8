/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/control.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/fd_passing.h"
#include "unit/descriptor.h"
#include "unit/test.h"

static int master, worker;
static struct mk_control_buffer room;
static struct mk_control_message m;

static int start(void **state)
{
    (void)state;
    memset(&m, 0xff, sizeof m);
    descriptor_begin(&master);
    descriptor_begin(&worker);
    return mk_control_open(&master, &worker);
}

static mk_err send_log(int end, mk_str where, int fd)
{
    return mk_control_send(end,
                           &(struct mk_control_message){.kind = MK_CONTROL_LOG, .text = where, .fd = fd});
}

static void a_word_is_heard(void **state)
{
    (void)state;
    assert_int_equal(mk_control_receive(master, &room, &m), -EAGAIN);
    assert_int_equal(mk_control_send_kind(worker, MK_CONTROL_READY), 0);
    assert_int_equal(mk_control_receive(master, &room, &m), 0);
    assert_int_equal(m.kind, MK_CONTROL_READY);
    assert_str(m.text, "");
    assert_int_equal(m.fd, -1);
    assert_int_equal(mk_control_receive(master, &room, &m), -EAGAIN);
}

static void messages_stay_apart(void **state)
{
    (void)state;
    assert_int_equal(send_log(master, MK_STR("one"), -1), 0);
    assert_int_equal(send_log(master, MK_STR("two"), -1), 0);
    assert_int_equal(mk_control_receive(worker, &room, &m), 0);
    assert_str(m.text, "one");
    assert_int_equal(mk_control_receive(worker, &room, &m), 0);
    assert_str(m.text, "two");
}

static void a_descriptor_comes_along(void **state)
{
    (void)state;
    int ends[2];
    char byte[8];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(send_log(master, MK_STR("/var/log/x"), ends[1]), 0);
    close(ends[1]);
    assert_int_equal(mk_control_receive(worker, &room, &m), 0);
    assert_int_equal(m.kind, MK_CONTROL_LOG);
    assert_str(m.text, "/var/log/x");
    assert_true(m.fd >= 0);
    assert_true(fcntl(m.fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(m.fd, "hello", 5), 5);
    assert_int_equal(read(ends[0], byte, sizeof byte), 5);
    close(m.fd);
    assert_int_equal(read(ends[0], byte, sizeof byte), 0); /* no other process has it */
    close(ends[0]);
}

static void text_and_number_arrive(void **state)
{
    (void)state;
    const struct mk_control_message sent = {
        .kind = MK_CONTROL_ROTATE, .number = -1, .text = MK_STR("a\0b"), .fd = -1};
    assert_int_equal(mk_control_send(worker, &sent), 0);
    assert_int_equal(mk_control_receive(master, &room, &m), 0);
    assert_int_equal(m.kind, MK_CONTROL_ROTATE);
    assert_int_equal(m.number, -1);
    assert_true(mk_str_eq(m.text, MK_STR("a\0b")));
}

static void text_has_its_limit(void **state)
{
    (void)state;
    static char text[MK_CONTROL_TEXT + 1];
    memset(text, 'x', sizeof text);
    struct mk_control_message sent = {
        .kind = MK_CONTROL_ROTATE, .text = mk_str_of(text, sizeof text), .fd = -1};
    assert_int_equal(mk_control_send(master, &sent), -EMSGSIZE);
    assert_int_equal(mk_control_receive(worker, &room, &m), -EAGAIN);
    sent.text.len = MK_CONTROL_TEXT;
    assert_int_equal(mk_control_send(master, &sent), 0);
    assert_int_equal(mk_control_receive(worker, &room, &m), 0);
    assert_int_equal(m.text.len, MK_CONTROL_TEXT);
}

/* An attacker may control the other end. */
static void what_is_no_message_is_passed_over(void **state)
{
    (void)state;
    static const mk_str bad[] = {MK_STR_INIT("x"), MK_STR_INIT("\xff\0\0\0\0\0\0\0"),
                                 MK_STR_INIT("\1\0\0\1\0\0\0\0four")};
    static char big[sizeof room + 1];
    unsigned before = mk_fd_count();
    for (size_t i = 0; i < MK_LEN(bad); i++) {
        const struct iovec v = {.iov_base = (void *)(uintptr_t)bad[i].p, .iov_len = bad[i].len};
        assert_int_equal(mk_fd_passing_send(worker, &v, 1, (int[]){1, 2, 1}, 3), 0);
        assert_int_equal(mk_control_receive(master, &room, &m), -EBADMSG);
    }
    const struct iovec v = {.iov_base = big, .iov_len = sizeof big};
    assert_int_equal(mk_fd_passing_send(worker, &v, 1, NULL, 0), 0);
    assert_int_equal(mk_control_receive(master, &room, &m), -EBADMSG);
    assert_int_equal(mk_fd_count(), before);
    assert_int_equal(mk_control_send_kind(worker, MK_CONTROL_READY), 0);
    assert_int_equal(mk_control_receive(master, &room, &m), 0);
}

static void an_end_that_is_gone_is_noticed(void **state)
{
    (void)state;
    assert_int_equal(mk_control_send_kind(worker, MK_CONTROL_READY), 0);
    mk_fd_close(&worker);
    assert_int_equal(mk_control_receive(master, &room, &m), 0); /* what was said before is heard */
    assert_int_equal(mk_control_receive(master, &room, &m), -EPIPE);
    assert_int_equal(send_log(master, MK_STR("x"), -1), -EPIPE);
}

static void no_process_waits(void **state)
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
        cmocka_unit_test_setup_teardown(a_word_is_heard, start, harness_stop),
        cmocka_unit_test_setup_teardown(messages_stay_apart, start, harness_stop),
        cmocka_unit_test_setup_teardown(a_descriptor_comes_along, start, harness_stop),
        cmocka_unit_test_setup_teardown(text_and_number_arrive, start, harness_stop),
        cmocka_unit_test_setup_teardown(text_has_its_limit, start, harness_stop),
        cmocka_unit_test_setup_teardown(what_is_no_message_is_passed_over, start, harness_stop),
        cmocka_unit_test_setup_teardown(an_end_that_is_gone_is_noticed, start, harness_stop),
        cmocka_unit_test_setup_teardown(no_process_waits, start, harness_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
