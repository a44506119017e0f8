/* SPDX-License-Identifier: Apache-2.0 */
/* Limits by control groups, in a folder that imitates the cgroup file system. */
#include "unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "unit/folder.h"

static struct folder top;

/* The file whose write fails, and the error of the write. */
static const char *refused;
static int refusal;

ssize_t __real_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n);

ssize_t __wrap_write(int fd, const void *p, size_t n)
{
    if (!refused || n != strlen(refused) || memcmp(p, refused, n) != 0)
        return __real_write(fd, p, n);
    errno = refusal;
    return -1;
}

static void put(const char *name, const char *text)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", top.path, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void make(const char *name)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", top.path, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static void assert_text(const char *name, const char *expected)
{
    char path[PATH_MAX], text[256] = "";
    (void)snprintf(path, sizeof path, "%s/%s", top.path, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, expected);
}

static void setup(void)
{
    char mounts[512];
    folder_setup(&top);
    (void)snprintf(mounts, sizeof mounts, "proc /proc proc rw 0 0\ncgroup2 %s cgroup2 rw 0 0\n", top.path);
    put("mounts", mounts);
    put("cgroup", "4:memory:/old\n0::/\n");
    put("cgroup.controllers", "cpuset cpu io memory\n");
    put("cgroup.subtree_control", "");
    put("cgroup.procs", "");
    make("shop");
    put("shop/cgroup.procs", "");
    put("shop/cpu.max", "");
    put("shop/memory.max", "");
}

static struct isolate_cgroup_path find(void)
{
    struct isolate_cgroup_path paths;
    char why[ISOLATE_CGROUP_ERROR_MAX] = "";
    assert_true(isolate_cgroup_find_own(top.path, &paths, why));
    assert_string_equal(paths.mount, top.path);
    return paths;
}

static void cgroup_limits_are_written_before_process_enters(void **state)
{
    char why[ISOLATE_CGROUP_ERROR_MAX];
    struct isolate_cgroup_path paths = find();
    const struct isolate_cgroup_limits limits = {.cpu = 50, .memory = 64 << 20};
    (void)state;
    assert_string_equal(paths.own, "");
    assert_true(isolate_cgroup_check_limits(&paths, &limits, why));
    int fd = isolate_cgroup_create(&paths, "shop", &limits, why);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "0", 1), 1);
    close(fd);
    assert_text("shop/cpu.max", "50000 100000");
    assert_text("shop/memory.max", "67108864");
    assert_text("shop/cgroup.procs", "0");
}

static void cgroup_missing_controller_is_reported(void **state)
{
    char why[ISOLATE_CGROUP_ERROR_MAX];
    struct isolate_cgroup_path paths = find();
    const struct isolate_cgroup_limits limits = {.cpu = 50};
    (void)state;
    put("cgroup.controllers", "cpuset io hugetlb");
    assert_false(isolate_cgroup_check_limits(&paths, &limits, why));
    assert_non_null(strstr(why, "the controller `cpu` is missing in"));
    assert_non_null(strstr(why, "Delegate=cpu memory"));
    assert_int_equal(isolate_cgroup_create(&paths, "shop", &limits, why), -1);
}

static void cgroup_without_version_2_mount_is_rejected(void **state)
{
    char why[ISOLATE_CGROUP_ERROR_MAX];
    struct isolate_cgroup_path paths;
    (void)state;
    put("mounts", "proc /proc proc rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n");
    assert_false(isolate_cgroup_find_own(top.path, &paths, why));
    assert_non_null(strstr(why, "this system has no control groups of version 2"));
    assert_false(isolate_cgroup_find_own("/there/is/no/such/folder", &paths, why));
    assert_non_null(strstr(why, "this system has no control groups of version 2"));
}

static void cgroup_process_outside_version_2_is_rejected(void **state)
{
    char why[ISOLATE_CGROUP_ERROR_MAX];
    struct isolate_cgroup_path paths;
    (void)state;
    put("cgroup", "4:memory:/old\n10::/odd\n");
    assert_false(isolate_cgroup_find_own(top.path, &paths, why));
    assert_non_null(strstr(why, "this process is in no control group of version 2"));
}

/* The server moves into the child cgroup "/server"; a cgroup whose name merely ends in "server" is the
 * server's own cgroup. */
static void cgroup_own_group_is_found(void **state)
{
    static const char *const groups[][2] = {{"0::/a.service\n", "/a.service"},
                                            {"4:cpu:/x\n0::/a.service\n5:io:/y\n", "/a.service"},
                                            {"0::/a.service/server\n", "/a.service"},
                                            {"0::/a.service/myserver\n", "/a.service/myserver"},
                                            {"0::/server/a\n", "/server/a"},
                                            {"0::/server\n", ""},
                                            {"0::/", ""}};
    (void)state;
    for (size_t i = 0; i < MK_LEN(groups); i++) {
        put("cgroup", groups[i][0]);
        assert_string_equal(find().own, groups[i][1]);
    }
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

static void cgroup_create_leaves_one_descriptor_open(void **state)
{
    char why[ISOLATE_CGROUP_ERROR_MAX];
    const struct isolate_cgroup_limits limits = {.cpu = 50, .memory = 64 << 20};
    unsigned before = count_descriptors();
    (void)state;
    struct isolate_cgroup_path paths = find();
    int fd = isolate_cgroup_create(&paths, "shop", &limits, why);
    assert_true(fd >= 0);
    assert_int_equal(count_descriptors(), before + 1);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
}

static void make_service(void)
{
    put("cgroup", "0::/monkey.service\n");
    make("monkey.service");
    make("monkey.service/server");
    make("monkey.service/shop");
    put("monkey.service/cgroup.controllers", "cpu memory\n");
    put("monkey.service/cgroup.subtree_control", "memory\n");
    put("monkey.service/cgroup.procs", "");
    put("monkey.service/server/cgroup.procs", "");
    put("monkey.service/shop/cgroup.procs", "");
    put("monkey.service/shop/memory.max", "");
}

/* The kernel allows no processes in a cgroup that enables controllers for its children. */
static void cgroup_server_moves_into_subgroup(void **state)
{
    char why[ISOLATE_CGROUP_ERROR_MAX], pid[16];
    const struct isolate_cgroup_limits limits = {.memory = 64 << 20};
    (void)state;
    make_service();
    struct isolate_cgroup_path paths = find();
    int fd = isolate_cgroup_create(&paths, "shop", &limits, why);
    assert_true(fd >= 0);
    close(fd);
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    assert_text("monkey.service/server/cgroup.procs", pid);
    assert_text("monkey.service/shop/memory.max", "67108864");
    put("cgroup", "0::/monkey.service/server\n"); /* the kernel would report this from now on */
    paths = find();
    assert_string_equal(paths.own, "/monkey.service");
    put("monkey.service/cgroup.procs", "1\n");
    assert_int_equal(isolate_cgroup_create(&paths, "shop", &limits, why), -1);
    assert_non_null(strstr(why, "other processes are in the control group"));
}

/* The supervisor of a service without limits, or a worker, may have started before the move. */
static void cgroup_children_move_with_server(void **state)
{
    char why[ISOLATE_CGROUP_ERROR_MAX], text[32], moved[32] = "";
    const struct isolate_cgroup_limits limits = {.memory = 64 << 20};
    int ends[2];
    (void)state;
    make_service();
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        _exit((int)read(ends[0], text, 1)); /* returns when the parent closes the other end */
    }
    assert_true(child > 0);
    (void)snprintf(text, sizeof text, "%d\n", (int)child);
    put("monkey.service/cgroup.procs", text);
    struct isolate_cgroup_path paths = find();
    int fd = isolate_cgroup_create(&paths, "shop", &limits, why);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(fd >= 0);
    close(fd);
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/monkey.service/server/cgroup.procs", top.path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, moved, sizeof moved - 1) > 0);
    close(fd);
    (void)snprintf(text, sizeof text, "%d", (int)child);
    assert_int_equal(strncmp(moved, text, strlen(text)),
                     0); /* the file may still contain the end of a longer process ID */
}

/* Opens the cgroup while a child of this process is in the server's cgroup; moving the child fails with
 * this error. */
static int open_beside_child(int error, char why[ISOLATE_CGROUP_ERROR_MAX])
{
    char text[32];
    const struct isolate_cgroup_limits limits = {.memory = 64 << 20};
    make_service();
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    (void)snprintf(text, sizeof text, "%d\n", (int)child);
    put("monkey.service/cgroup.procs", text);
    text[strlen(text) - 1] = '\0';
    struct isolate_cgroup_path paths = find();
    refused = text;
    refusal = error;
    int fd = isolate_cgroup_create(&paths, "shop", &limits, why);
    refused = NULL;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return fd;
}

static void cgroup_process_that_cannot_move_is_an_error(void **state)
{
    char why[ISOLATE_CGROUP_ERROR_MAX];
    (void)state;
    assert_int_equal(open_beside_child(EBUSY, why), -1);
    assert_non_null(strstr(why, "cannot write"));
    assert_non_null(strstr(why, "monkey.service/server/cgroup.procs"));
}

static void cgroup_process_that_has_exited_is_ignored(void **state)
{
    char why[ISOLATE_CGROUP_ERROR_MAX];
    (void)state;
    int fd = open_beside_child(ESRCH, why);
    assert_true(fd >= 0);
    close(fd);
}

static void cgroup_create_makes_group_folder(void **state)
{
    char why[ISOLATE_CGROUP_ERROR_MAX], path[PATH_MAX];
    struct isolate_cgroup_path paths = find();
    struct stat st;
    const struct isolate_cgroup_limits limits = {.cpu = 50};
    (void)state;
    assert_int_equal(isolate_cgroup_create(&paths, "other", &limits, why),
                     -1); /* unlike the kernel, this test does not create the files of a cgroup */
    assert_non_null(strstr(why, "cannot write"));
    assert_non_null(strstr(why, "/other/cpu.max"));
    (void)snprintf(path, sizeof path, "%s/other", top.path);
    assert_int_equal(stat(path, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(isolate_cgroup_create(&paths, "no/other", &limits, why), -1);
    assert_non_null(strstr(why, "cannot make the control group"));
}

/* "cpu" must not match "cpuset", and an enabled controller is not enabled again. */
static void cgroup_controller_is_enabled_once(void **state)
{
    char why[ISOLATE_CGROUP_ERROR_MAX];
    struct isolate_cgroup_path paths = find();
    const struct isolate_cgroup_limits limits = {.cpu = 50};
    (void)state;
    put("cgroup.subtree_control", "cpuset memory");
    int fd = isolate_cgroup_create(&paths, "shop", &limits, why);
    assert_true(fd >= 0);
    close(fd);
    /* The write replaces the first bytes of the file. */
    assert_text("cgroup.subtree_control", "+cpuet memory");
    put("cgroup.subtree_control", "memory cpu");
    fd = isolate_cgroup_create(&paths, "shop", &limits, why);
    assert_true(fd >= 0);
    close(fd);
    assert_text("cgroup.subtree_control", "memory cpu");
    assert_text("shop/memory.max", ""); /* no limit */
}

static void cgroup_remove_deletes_group(void **state)
{
    struct stat st;
    char path[PATH_MAX];
    struct isolate_cgroup_path paths = find();
    (void)state;
    make("gone");
    isolate_cgroup_remove(&paths, "gone");
    (void)snprintf(path, sizeof path, "%s/gone", top.path);
    assert_int_equal(stat(path, &st), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {fixture_test(cgroup_limits_are_written_before_process_enters, setup),
                                       fixture_test(cgroup_missing_controller_is_reported, setup),
                                       fixture_test(cgroup_without_version_2_mount_is_rejected, setup),
                                       fixture_test(cgroup_server_moves_into_subgroup, setup),
                                       fixture_test(cgroup_children_move_with_server, setup),
                                       fixture_test(cgroup_process_that_cannot_move_is_an_error, setup),
                                       fixture_test(cgroup_process_that_has_exited_is_ignored, setup),
                                       fixture_test(cgroup_create_makes_group_folder, setup),
                                       fixture_test(cgroup_controller_is_enabled_once, setup),
                                       fixture_test(cgroup_remove_deletes_group, setup),
                                       fixture_test(cgroup_process_outside_version_2_is_rejected, setup),
                                       fixture_test(cgroup_own_group_is_found, setup),
                                       fixture_test(cgroup_create_leaves_one_descriptor_open, setup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
