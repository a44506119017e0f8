/* SPDX-License-Identifier: Apache-2.0 */
#include "event/loop.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/fd.h"
#include "unit/fixtures.h"
#include "unit/test.h"

static struct mk_loop loop;
static int ours[2], theirs[2];
static struct mk_watcher *watchers[2];
static unsigned n_calls, last;

static void setup(void)
{
    n_calls = last = 0;
    watchers[0] = watchers[1] = NULL;
    for (int i = 0; i < 2; i++) {
        fd_setup(&ours[i]);
        fd_setup(&theirs[i]);
        socket_pair(&ours[i], &theirs[i]);
    }
    loop_setup(&loop);
}

static void run_once(void)
{
    assert_int_equal(mk_loop_run_once(&loop, 0), 0);
}

static void note(void *ctx, unsigned which)
{
    assert_ptr_equal(ctx, &n_calls);
    n_calls++;
    last = which;
}

static struct mk_watcher *watch(int fd, unsigned events)
{
    struct mk_watcher *w = mk_loop_new_watcher(&loop, fd, events, note, &n_calls);
    assert_non_null(w);
    return w;
}

static void watcher_reports_wanted_events(void **state)
{
    (void)state;
    struct mk_watcher *w = watch(ours[0], MK_READABLE);
    run_once();
    assert_int_equal(n_calls, 0); /* the watcher did not request writability */
    assert_int_equal(send(theirs[0], "a", 1, 0), 1);
    run_once();
    assert_int_equal(n_calls, 1);
    assert_int_equal(last, MK_READABLE);
    run_once();
    assert_int_equal(n_calls, 1); /* edge-triggered: an event is reported once, although the data is unread */
    assert_int_equal(send(theirs[0], "b", 1, 0), 1);
    run_once();
    assert_int_equal(n_calls, 2);
    mk_watcher_free(w);
}

static void watcher_reports_pending_events(void **state)
{
    (void)state;
    assert_int_equal(send(theirs[0], "a", 1, 0), 1);
    struct mk_watcher *w = watch(ours[0], MK_READABLE | MK_WRITABLE);
    run_once();
    assert_int_equal(n_calls, 1);
    assert_int_equal(last, MK_READABLE | MK_WRITABLE);
    mk_watcher_free(w);
}

static void watcher_reports_end_of_input(void **state)
{
    (void)state;
    struct mk_watcher *w = watch(ours[0], MK_READABLE);
    shutdown(theirs[0], SHUT_WR);
    run_once();
    assert_int_equal(last, MK_READABLE | MK_ENDED); /* the peer has closed, but we can still write */
    mk_watcher_free(w);
}

static void watcher_reports_hang_up_always(void **state)
{
    (void)state;
    struct mk_watcher *w = watch(ours[0], 0), *r = watch(ours[1], MK_READABLE);
    run_once();
    assert_int_equal(n_calls, 0);
    mk_fd_close(&theirs[0]);
    run_once();
    assert_int_equal(n_calls, 1);
    assert_int_equal(last, MK_HUNG_UP);
    mk_fd_close(&theirs[1]);
    run_once();
    assert_int_equal(n_calls, 2);
    assert_int_equal(last, MK_HUNG_UP | MK_READABLE | MK_ENDED);
    mk_watcher_free(w);
    mk_watcher_free(r);
}

static void watcher_level_is_reported_until_read(void **state)
{
    (void)state;
    char buffer[2];
    struct mk_watcher *w = watch(ours[0], MK_READABLE | MK_LEVEL);
    assert_int_equal(send(theirs[0], "ab", 2, 0), 2);
    run_once();
    assert_int_equal(recv(ours[0], buffer, 1, 0), 1);
    run_once();
    assert_int_equal(n_calls, 2);
    assert_int_equal(recv(ours[0], buffer, 1, 0), 1);
    run_once();
    assert_int_equal(n_calls, 2);
    mk_watcher_free(w);
}

static void watcher_events_can_change(void **state)
{
    (void)state;
    struct mk_watcher *w = watch(ours[0], MK_READABLE);
    assert_int_equal(mk_watcher_change(w, MK_READABLE | MK_WRITABLE), 0);
    run_once();
    assert_int_equal(last, MK_WRITABLE);
    assert_int_equal(send(theirs[0], "a", 1, 0), 1);
    assert_int_equal(mk_watcher_change(w, 0), 0);
    run_once();
    assert_int_equal(n_calls, 1); /* the watcher requests no events */
    assert_int_equal(mk_watcher_change(w, MK_READABLE), 0);
    run_once();
    assert_int_equal(n_calls, 2); /* reports the data that arrived while no events were requested */
    assert_int_equal(last, MK_READABLE);
    assert_int_equal(mk_watcher_change(w, MK_READABLE), 0);
    run_once();
    assert_int_equal(n_calls, 3); /* reported again, because it is unread */
    mk_watcher_free(w);
}

static void watcher_rejects_invalid_descriptors(void **state)
{
    (void)state;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_null(mk_loop_new_watcher(&loop, file, MK_READABLE, note, NULL));
    assert_null(mk_loop_new_watcher(&loop, -1, MK_READABLE, note, NULL));
    struct mk_watcher *w = watch(ours[0], MK_READABLE);
    assert_null(mk_loop_new_watcher(&loop, ours[0], MK_READABLE, note, NULL));
    mk_watcher_free(w);
    run_once();
    w = watch(ours[0], MK_READABLE); /* the descriptor can be watched again */
    mk_watcher_free(w);
    mk_watcher_free(NULL);
    mk_fd_close(&file);
}

static void free_both(void *ctx, unsigned which)
{
    (void)ctx;
    (void)which;
    n_calls++;
    mk_watcher_free(watchers[0]);
    mk_watcher_free(watchers[1]);
}

/* The event of the other watcher is already pending. */
static void watcher_callback_can_free_itself_and_others(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        watchers[i] = mk_loop_new_watcher(&loop, ours[i], MK_WRITABLE, free_both, NULL);
    run_once();
    assert_int_equal(n_calls, 1);
    run_once();
    assert_int_equal(n_calls, 1);
    assert_null(loop.tasks); /* the memory of both watchers is freed */
}

static void watcher_freed_between_iterations_is_not_called(void **state)
{
    (void)state;
    struct mk_watcher *w = watch(ours[0], MK_WRITABLE);
    mk_watcher_free(w);
    run_once();
    assert_int_equal(n_calls, 0);
}

/* The descriptor is closed first; its number may be reused before the iteration ends. */
static void close_and_drop_both(void *ctx, unsigned which)
{
    note(ctx, which);
    for (int i = 0; i < 2; i++) {
        mk_fd_close(&ours[i]);
        mk_watcher_free_closed(watchers[i]);
    }
}

static void watcher_dropped_reports_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        watchers[i] = mk_loop_new_watcher(&loop, ours[i], MK_READABLE, close_and_drop_both, &n_calls);
        assert_non_null(watchers[i]);
        assert_int_equal(send(theirs[i], "a", 1, 0), 1);
    }
    run_once();
    assert_int_equal(n_calls, 1);
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    struct mk_watcher *next = watch(ends[0], MK_READABLE);
    assert_int_equal(send(ends[1], "b", 1, 0), 1);
    run_once();
    assert_int_equal(n_calls, 2);
    mk_watcher_free(next);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(watcher_reports_wanted_events, setup),
        fixture_test(watcher_reports_pending_events, setup),
        fixture_test(watcher_reports_end_of_input, setup),
        fixture_test(watcher_reports_hang_up_always, setup),
        fixture_test(watcher_level_is_reported_until_read, setup),
        fixture_test(watcher_events_can_change, setup),
        fixture_test(watcher_rejects_invalid_descriptors, setup),
        fixture_test(watcher_callback_can_free_itself_and_others, setup),
        fixture_test(watcher_freed_between_iterations_is_not_called, setup),
        fixture_test(watcher_dropped_reports_nothing, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
