/* SPDX-License-Identifier: Apache-2.0 */
#include "os/daemon.h"

#include "unit/child.h"

static int be_daemon(int code)
{
    int ready_fd = -1;
    if (mk_daemon_start(&ready_fd))
        return 99;
    bool left = getsid(0) == getpid() && getpgrp() == getpid();
    if (code >= 0)
        mk_daemon_notify_parent(&ready_fd, left ? code : 98);
    _exit(0);
}

static int be_fine_daemon(void)
{
    return be_daemon(0);
}

static int be_failing_daemon(void)
{
    return be_daemon(7);
}

static int be_dying_daemon(void)
{
    return be_daemon(-1);
}

static void daemon_start_result_reaches_parent(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(be_fine_daemon), 0);
    assert_int_equal(run_in_child(be_failing_daemon), 7);
    assert_int_equal(run_in_child(be_dying_daemon), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(daemon_start_result_reaches_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
