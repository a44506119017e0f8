/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's requests to its master, in the master's message format; without a master, the worker does as
 * much as it can itself. */
#include "worker/worker.h"
#include "worker/worker_master.h"

#include "os/fd.h"
#include "unit/test.h"
#include "worker/control.h"

static struct mk_worker w;
static struct mk_log log_of_test;

static void start_with(int master_fd)
{
    log_of_test = (struct mk_log){.level = MK_LOG_INFO};
    w = (struct mk_worker){.count = 1, .master_fd = master_fd, .web.log = &log_of_test};
}

static void worker_without_master_sets_own_log_level_only(void **state)
{
    (void)state;
    start_with(-1);
    assert_int_equal(mk_worker_request_reload(&w), -ENOTCONN);
    assert_int_equal(mk_worker_request_replacement(&w), -ENOTCONN);
    assert_int_equal(mk_worker_set_log_level(&w, (enum mk_log_level)MK_LOG_LEVEL_COUNT), -EINVAL);
    assert_int_equal(mk_worker_set_log_level(&w, MK_LOG_DEBUG), 0);
    assert_int_equal(mk_worker_log_level(&w), MK_LOG_DEBUG);
}

static void worker_sends_requests_to_master(void **state)
{
    (void)state;
    int master, worker;
    struct mk_control_buffer buffer;
    struct mk_control_message m;
    assert_int_equal(mk_control_open(&master, &worker), 0);
    start_with(worker);
    assert_int_equal(mk_worker_request_reload(&w), 0);
    assert_int_equal(mk_worker_request_replacement(&w), 0);
    assert_int_equal(mk_worker_set_log_level(&w, MK_LOG_ERROR), 0);
    /* unchanged until the master sends the new level */
    assert_int_equal(mk_worker_log_level(&w), MK_LOG_INFO);
    assert_int_equal(mk_control_receive(master, &buffer, &m), 0);
    assert_int_equal(m.kind, MK_CONTROL_RELOAD);
    assert_int_equal(mk_control_receive(master, &buffer, &m), 0);
    assert_int_equal(m.kind, MK_CONTROL_REPLACE);
    assert_int_equal(mk_control_receive(master, &buffer, &m), 0);
    assert_int_equal(m.kind, MK_CONTROL_LOG_LEVEL);
    assert_int_equal(m.number, MK_LOG_ERROR);
    mk_fd_close(&master); /* a closed connection counts as no master */
    assert_int_equal(mk_worker_request_reload(&w), -ENOTCONN);
    mk_fd_close(&worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_without_master_sets_own_log_level_only),
        cmocka_unit_test(worker_sends_requests_to_master),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
