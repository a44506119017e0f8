/* SPDX-License-Identifier: Apache-2.0 */
/* Removes folders whose sockets no longer have a listener. */
#include "unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "stale_dirs.h"
#include "unit/folder.h"

static struct folder top;

static void setup(void)
{
    folder_setup(&top);
}

/* Creates a folder with a socket, whose listener has exited unless `is_alive`. */
static int make(const char *name, bool is_alive, bool is_old)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", top.path, name);
    assert_int_equal(mkdir(path, 0711), 0);
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/%s/guest", top.path, name);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 1), 0);
    const struct timespec past[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    if (is_old)
        assert_int_equal(utimensat(AT_FDCWD, path, past, 0), 0);
    if (!is_alive)
        close(fd);
    return is_alive ? fd : -1;
}

static bool is_there(const char *name)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", top.path, name);
    return access(path, F_OK) == 0;
}

static void stale_dirs_only_old_and_dead_are_removed(void **state)
{
    (void)state;
    int fd = make("monkey-0000000000000001", true, true);
    make("monkey-0000000000000002", false, false);
    make("monkey-000000000000000f", false, true);
    make("monkey-other", false, true);
    isolate_stale_dirs_remove(top.path);
    assert_true(is_there("monkey-0000000000000001"));
    assert_true(is_there("monkey-0000000000000002"));
    assert_false(is_there("monkey-000000000000000f"));
    assert_true(is_there("monkey-other"));
    isolate_stale_dirs_remove("/there/is/no/such/folder");
    close(fd);
}

/* A busy server may not accept a connection at once; it still counts as alive. */
static void stale_dirs_busy_listener_keeps_folder(void **state)
{
    enum { MANY = 64 };
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int clients[MANY], n = 0, fd = make("monkey-0000000000000001", true, true);
    bool is_full = false;
    (void)state;
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/monkey-0000000000000001/guest", top.path);
    for (; n < MANY && !is_full; n++) {
        clients[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        is_full = connect(clients[n], (struct sockaddr *)&at, sizeof at) < 0;
        assert_true(!is_full || errno == EAGAIN);
    }
    assert_true(is_full);
    isolate_stale_dirs_remove(top.path);
    assert_true(is_there("monkey-0000000000000001/guest"));
    while (n)
        close(clients[--n]);
    close(fd);
}

static void stale_dirs_writable_by_others_are_kept(void **state)
{
    char path[PATH_MAX];
    (void)state;
    make("monkey-0000000000000001", false, true);
    make("monkey-0000000000000002", false, true);
    (void)snprintf(path, sizeof path, "%s/monkey-0000000000000001", top.path);
    assert_int_equal(chmod(path, 0731), 0);
    (void)snprintf(path, sizeof path, "%s/monkey-0000000000000002", top.path);
    assert_int_equal(chmod(path, 0713), 0);
    isolate_stale_dirs_remove(top.path);
    assert_true(is_there("monkey-0000000000000001"));
    assert_true(is_there("monkey-0000000000000002"));
}

static void stale_dirs_of_other_users_are_kept(void **state)
{
    char path[PATH_MAX];
    (void)state;
    if (geteuid() != 0)
        skip();
    make("monkey-0000000000000001", false, true);
    (void)snprintf(path, sizeof path, "%s/monkey-0000000000000001", top.path);
    assert_int_equal(chown(path, 65534, 65534), 0);
    isolate_stale_dirs_remove(top.path);
    assert_true(is_there("monkey-0000000000000001"));
}

/* The names belong to other programs, or the file is not a folder. */
static void stale_dirs_other_names_and_files_are_kept(void **state)
{
    static const char *const names[] = {"monkey-00000000000000010", "monkey-000000000000000",
                                        "monkey-000000000000000G", "monkey_0000000000000001",
                                        "onkey-0000000000000001"};
    char path[PATH_MAX], link[PATH_MAX];
    (void)state;
    for (size_t i = 0; i < MK_LEN(names); i++)
        make(names[i], false, true);
    (void)snprintf(path, sizeof path, "%s/%s", top.path, names[0]);
    (void)snprintf(link, sizeof link, "%s/monkey-000000000000000a", top.path);
    assert_int_equal(symlink(path, link), 0);
    isolate_stale_dirs_remove(top.path);
    for (size_t i = 0; i < MK_LEN(names); i++)
        assert_true(is_there(names[i]));
    assert_true(is_there("monkey-000000000000000a/guest"));
}

/* The cleanup removes the socket and the empty folder that the group uses as its document root, but no other
 * files. */
static void stale_dirs_empty_document_root_is_removed_but_no_files(void **state)
{
    char path[PATH_MAX];
    (void)state;
    make("monkey-0000000000000001", false, false);
    (void)snprintf(path, sizeof path, "%s/monkey-0000000000000001/none", top.path);
    assert_int_equal(mkdir(path, 0755), 0);
    *strrchr(path, '/') = '\0';
    const struct timespec past[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, path, past, 0), 0);
    (void)snprintf(path, sizeof path, "%s/monkey-0000000000000002", top.path);
    assert_int_equal(mkdir(path, 0711), 0);
    (void)snprintf(path, sizeof path, "%s/monkey-0000000000000002/file", top.path);
    close(open(path, O_WRONLY | O_CREAT, 0600));
    *strrchr(path, '/') = '\0';
    assert_int_equal(utimensat(AT_FDCWD, path, past, 0), 0);
    isolate_stale_dirs_remove(top.path);
    assert_false(is_there("monkey-0000000000000001"));
    assert_true(is_there("monkey-0000000000000002/file"));
}

static unsigned count_descriptors(void)
{
    unsigned n = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void stale_dirs_leaves_no_descriptor_open(void **state)
{
    unsigned before = count_descriptors();
    (void)state;
    make("monkey-0000000000000001", false, true);
    make("monkey-0000000000000002", false, false);
    isolate_stale_dirs_remove(top.path);
    assert_false(is_there("monkey-0000000000000001"));
    assert_int_equal(count_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(stale_dirs_only_old_and_dead_are_removed, setup),
        fixture_test(stale_dirs_busy_listener_keeps_folder, setup),
        fixture_test(stale_dirs_writable_by_others_are_kept, setup),
        fixture_test(stale_dirs_of_other_users_are_kept, setup),
        fixture_test(stale_dirs_other_names_and_files_are_kept, setup),
        fixture_test(stale_dirs_empty_document_root_is_removed_but_no_files, setup),
        fixture_test(stale_dirs_leaves_no_descriptor_open, setup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
