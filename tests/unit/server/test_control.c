/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd.h"
#include "unit/test.h"

static int master, worker;
static struct mk_control_message m;

static int start(void **state)
{
    (void)state;
    memset(&m, 0xff, sizeof m);
    return mk_control_open(&master, &worker);
}

static int stop(void **state)
{
    (void)state;
    mk_fd_close(&master);
    mk_fd_close(&worker);
    return 0;
}

static void a_word_is_heard(void **state)
{
    (void)state;
    assert_int_equal(mk_control_receive(master, &m), -EAGAIN);
    assert_int_equal(mk_control_send(worker, MK_CONTROL_READY, MK_STR(""), -1), 0);
    assert_int_equal(mk_control_receive(master, &m), 0);
    assert_int_equal(m.kind, MK_CONTROL_READY);
    assert_string_equal(m.where, "");
    assert_int_equal(m.fd, -1);
    assert_int_equal(mk_control_receive(master, &m), -EAGAIN);
}

static void messages_stay_apart(void **state)
{
    (void)state;
    assert_int_equal(mk_control_send(master, MK_CONTROL_LOG, MK_STR("one"), -1), 0);
    assert_int_equal(mk_control_send(master, MK_CONTROL_LOG, MK_STR("two"), -1), 0);
    assert_int_equal(mk_control_receive(worker, &m), 0);
    assert_string_equal(m.where, "one");
    assert_int_equal(mk_control_receive(worker, &m), 0);
    assert_string_equal(m.where, "two");
}

static void a_descriptor_comes_along(void **state)
{
    (void)state;
    int ends[2];
    char room[8];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(mk_control_send(master, MK_CONTROL_LOG, MK_STR("/var/log/x"), ends[1]), 0);
    close(ends[1]);
    assert_int_equal(mk_control_receive(worker, &m), 0);
    assert_int_equal(m.kind, MK_CONTROL_LOG);
    assert_string_equal(m.where, "/var/log/x");
    assert_true(m.fd >= 0);
    assert_true(fcntl(m.fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(m.fd, "hello", 5), 5);
    assert_int_equal(read(ends[0], room, sizeof room), 5);
    close(m.fd);
    assert_int_equal(read(ends[0], room, sizeof room), 0); /* nobody else has it */
    close(ends[0]);
}

static void a_text_has_its_limit(void **state)
{
    (void)state;
    static char text[MK_CONTROL_TEXT];
    memset(text, 'x', sizeof text);
    assert_int_equal(mk_control_send(master, MK_CONTROL_LOG, mk_str_of(text, sizeof text), -1), -EMSGSIZE);
    assert_int_equal(mk_control_receive(worker, &m), -EAGAIN);
    assert_int_equal(mk_control_send(master, MK_CONTROL_LOG, mk_str_of(text, sizeof text - 1), -1), 0);
    assert_int_equal(mk_control_receive(worker, &m), 0);
    assert_int_equal(strlen(m.where), sizeof text - 1);
}

static void an_end_that_is_gone_is_noticed(void **state)
{
    (void)state;
    assert_int_equal(mk_control_send(worker, MK_CONTROL_READY, MK_STR(""), -1), 0);
    mk_fd_close(&worker);
    assert_int_equal(mk_control_receive(master, &m), 0); /* what was said before is heard */
    assert_int_equal(mk_control_receive(master, &m), -EPIPE);
    assert_int_equal(mk_control_send(master, MK_CONTROL_LOG, MK_STR("x"), -1), -EPIPE);
}

static void nobody_waits(void **state)
{
    (void)state;
    mk_err e = 0;
    for (int i = 0; i < 100000 && !e; i++)
        e = mk_control_send(master, MK_CONTROL_LOG, MK_STR("x"), -1);
    assert_int_equal(e, -EAGAIN);
    assert_true(fcntl(master, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(worker, F_GETFD) & FD_CLOEXEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_word_is_heard, start, stop),
        cmocka_unit_test_setup_teardown(messages_stay_apart, start, stop),
        cmocka_unit_test_setup_teardown(a_descriptor_comes_along, start, stop),
        cmocka_unit_test_setup_teardown(a_text_has_its_limit, start, stop),
        cmocka_unit_test_setup_teardown(an_end_that_is_gone_is_noticed, start, stop),
        cmocka_unit_test_setup_teardown(nobody_waits, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
