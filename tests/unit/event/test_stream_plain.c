/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "event/stream.h"
#include "unit/fixtures.h"
#include "unit/folder.h"
#include "unit/test.h"

static struct mk_stream s;
static int peer;

static void setup(void)
{
    int fd;
    fd_setup(&peer);
    socket_pair(&fd, &peer);
    mk_stream_plain_open(&s, fd);
}

static void teardown(void)
{
    if (s.fd >= 0)
        s.ops->close(&s);
}

static void check_peer(const char *text)
{
    char buffer[256];
    ssize_t n = recv(peer, buffer, sizeof buffer, 0);
    assert_true(n >= 0);
    assert_str(mk_str_of(buffer, (size_t)n), text);
}

static void stream_plain_reads_and_writes(void **state)
{
    (void)state;
    char buffer[16];
    assert_int_equal(s.ops->write(&s, MK_STR("hello"), false), 5);
    assert_int_equal(s.ops->write(&s, MK_STR(" world"), true), 6);
    check_peer("hello world");
    assert_int_equal(s.ops->read(&s, buffer, sizeof buffer), -EAGAIN);
    assert_int_equal(send(peer, "answer", 6, 0), 6);
    assert_int_equal(s.ops->read(&s, buffer, 4), 4);
    assert_memory_equal(buffer, "answ", 4);
    assert_int_equal(s.ops->read(&s, buffer, sizeof buffer), 2);
}

static void stream_plain_full_socket_returns_eagain(void **state)
{
    (void)state;
    static char large[1 << 20];
    ssize_t n = s.ops->write(&s, mk_str_of(large, sizeof large), false);
    assert_true(n > 0 && (size_t)n < sizeof large);
    assert_int_equal(s.ops->write(&s, mk_str_of(large, sizeof large), false), -EAGAIN);
}

static void stream_plain_room_is_the_free_space(void **state)
{
    (void)state;
    static const char some[4096];
    size_t empty = s.ops->room(&s);
    assert_int_equal(s.ops->write(&s, mk_str_of(some, sizeof some), false), sizeof some);
    assert_in_range(s.ops->room(&s), 1, empty - sizeof some);
    mk_fd_close(&s.fd);
    assert_int_equal(s.ops->room(&s), 0);
}

static void stream_plain_read_returns_0_at_the_end(void **state)
{
    (void)state;
    char buffer[16];
    send(peer, "last", 4, 0);
    shutdown(peer, SHUT_WR);
    assert_int_equal(s.ops->read(&s, buffer, sizeof buffer), 4);
    assert_int_equal(s.ops->read(&s, buffer, sizeof buffer), 0);
    assert_int_equal(s.ops->write(&s, MK_STR("still heard"), false), 11);
    check_peer("still heard");
}

static void stream_plain_write_to_closed_peer_fails_without_signal(void **state)
{
    (void)state;
    mk_fd_close(&peer);
    assert_int_equal(s.ops->write(&s, MK_STR("x"), false), -EPIPE);
}

static void stream_plain_shutdown_reaches_the_peer(void **state)
{
    (void)state;
    char buffer[16];
    s.ops->shutdown(&s);
    check_peer("");
    assert_int_equal(send(peer, "heard", 5, 0), 5);
    assert_int_equal(s.ops->read(&s, buffer, sizeof buffer), 5);
    int fd = s.fd;
    s.ops->close(&s);
    assert_int_equal(s.fd, -1);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void stream_plain_send_file_starts_at_the_offset(void **state)
{
    (void)state;
    struct folder f;
    folder_init(&f);
    folder_add(&f, "file", MK_STR("0123456789"));
    int file = openat(f.fd, "file", O_RDONLY);
    assert_int_equal(s.ops->send_file(&s, file, 3, 4), 4);
    check_peer("3456");
    assert_int_equal(s.ops->send_file(&s, file, 0, 2), 2);
    check_peer("01");
    assert_int_equal(s.ops->send_file(&s, file, 8, 100), 2); /* the file is shorter than requested */
    check_peer("89");
    assert_int_equal(s.ops->send_file(&s, file, 10, 100), 0);
    assert_int_equal(lseek(file, 0, SEEK_CUR), 0); /* the shared file offset has not moved */
    close(file);
    assert_int_equal(s.ops->send_file(&s, file, 0, 2), -EBADF);
    folder_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(stream_plain_reads_and_writes, setup, teardown),
        fixture_test(stream_plain_full_socket_returns_eagain, setup, teardown),
        fixture_test(stream_plain_room_is_the_free_space, setup, teardown),
        fixture_test(stream_plain_read_returns_0_at_the_end, setup, teardown),
        fixture_test(stream_plain_write_to_closed_peer_fails_without_signal, setup, teardown),
        fixture_test(stream_plain_shutdown_reaches_the_peer, setup, teardown),
        fixture_test(stream_plain_send_file_starts_at_the_offset, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
