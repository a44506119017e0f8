/* SPDX-License-Identifier: Apache-2.0 */
/* Folders whose sockets have no listener any more. */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "stale.h"
#include "unit/folder.h"

static char base[] = "/tmp/monkey-stale-XXXXXX";

/* With a socket that listens, or did. */
static int make(const char *name, bool lives, bool is_old)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char path[64];
    (void)snprintf(path, sizeof path, "%s/%s", base, name);
    assert_int_equal(mkdir(path, 0711), 0);
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/guest", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 1), 0);
    const struct timespec past[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    if (is_old)
        assert_int_equal(utimensat(AT_FDCWD, path, past, 0), 0);
    if (!lives)
        close(fd);
    return lives ? fd : -1;
}

static bool is_there(const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%s/%s", base, name);
    return access(path, F_OK) == 0;
}

static void only_what_is_old_and_dead_goes(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(base));
    int fd = make("monkey-0000000000000001", true, true);
    make("monkey-0000000000000002", false, false);
    make("monkey-000000000000000f", false, true);
    make("monkey-other", false, true);
    isolate_stale_remove(base);
    assert_true(is_there("monkey-0000000000000001"));
    assert_true(is_there("monkey-0000000000000002"));
    assert_false(is_there("monkey-000000000000000f"));
    assert_true(is_there("monkey-other"));
    isolate_stale_remove("/there/is/no/such/folder");
    close(fd);
    (void)nftw(base, folder_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_what_is_old_and_dead_goes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
