/* SPDX-License-Identifier: Apache-2.0 */
#include "os/safe_open.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "os/fd.h"
#include "unit/folder.h"
#include "unit/test.h"

enum { OTHER = 54321, GROUP = 54322 };

static struct folder folder;
static const struct mk_identity other = {.uid = OTHER, .gid = OTHER, .groups = {OTHER, GROUP}, .n_groups = 2};

static void setup(void)
{
    folder_setup(&folder);
}

static int open_as(const char *name, const struct mk_identity *id)
{
    char buffer[PATH_MAX];
    int fd = mk_safe_open(folder_path(&folder, name, buffer), O_WRONLY | O_CREAT | O_APPEND, 0640, id);
    int answer = fd < 0 ? fd : 0;
    mk_fd_close(&fd);
    return answer;
}

static void set_mode(const char *name, mode_t mode)
{
    char buffer[PATH_MAX];
    assert_int_equal(chmod(folder_path(&folder, name, buffer), mode), 0);
}

static void safe_open_in_safe_folder_succeeds(void **state)
{
    (void)state;
    assert_int_equal(open_as("log", &other), 0);
    assert_int_equal(open_as("log", &other), 0);
    assert_int_equal(open_as("no/log", &other), -ENOENT);
}

static void add_link(const char *name, const char *target)
{
    char buffer[PATH_MAX];
    assert_int_equal(symlink(target, folder_path(&folder, name, buffer)), 0);
}

static void safe_open_rejects_link_as_last_name(void **state)
{
    (void)state;
    char target[PATH_MAX];
    struct stat st;
    folder_path(&folder, "target", target);
    add_link("link", target);
    assert_int_equal(open_as("link", &other), -ELOOP);
    assert_int_equal(stat(target, &st), -1);
}

static void safe_open_follows_links_of_root_in_safe_folders(void **state)
{
    (void)state;
    char buffer[PATH_MAX];
    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdir(folder_path(&folder, "in", buffer), 0755), 0);
    assert_int_equal(mkdir(folder_path(&folder, "ways", buffer), 0755), 0);
    add_link("ways/whole", folder_path(&folder, "in", buffer));
    add_link("ways/near", "..//./in/");
    add_link("ways/over", "near/../ways/whole");
    add_link("ways/round", "round");
    add_link("ways/none", "nowhere");
    assert_int_equal(open_as("ways/whole/a", &other), 0);
    assert_int_equal(open_as("ways/near/b", &other), 0);
    assert_int_equal(open_as("ways/over/c", &other), 0);
    for (const char *name = "a\0b\0c\0"; *name; name += 2) {
        char path[8];
        snprintf(path, sizeof path, "in/%s", name);
        assert_int_equal(access(folder_path(&folder, path, buffer), F_OK), 0);
    }
    assert_int_equal(open_as("ways/round/a", &other), -ELOOP);
    assert_int_equal(open_as("ways/none/a", &other), -ENOENT);
    set_mode("in", 0777); /* the link target must also be safe */
    assert_int_equal(open_as("ways/whole/a", &other), -EPERM);
    set_mode("in", 0755);
    set_mode("ways", 0777);
    assert_int_equal(open_as("ways/whole/a", &other), -ELOOP);
    set_mode("ways", 0755);
    assert_int_equal(lchown(folder_path(&folder, "ways/whole", buffer), OTHER, OTHER), 0);
    assert_int_equal(open_as("ways/whole/a", &other), -ELOOP);
    assert_int_equal(open_as("ways/near/a", &other), 0);
}

static void safe_open_rejects_folders_writable_by_other(void **state)
{
    (void)state;
    char buffer[PATH_MAX];
    assert_int_equal(mkdir(folder_path(&folder, "in", buffer), 0755), 0);
    assert_int_equal(open_as("in/log", &other), 0);
    set_mode("in", 0777);
    assert_int_equal(open_as("in/log", &other), -EPERM);
    set_mode("in", 01777); /* others may create a file with the new name first */
    assert_int_equal(open_as("in/new", &other), -EPERM);
    struct mk_identity owner = {.uid = geteuid(), .gid = OTHER};
    set_mode("in", 0500);
    assert_int_equal(open_as("in/log", &owner), -EPERM);
    struct mk_identity member = {.uid = OTHER, .groups = {getegid()}, .n_groups = 1};
    set_mode("in", 0775);
    assert_int_equal(open_as("in/log", &member), -EPERM);
    assert_int_equal(open_as("in/log", &other), 0);
    member.n_groups = -1; /* the groups are unknown: the user may belong to any group */
    assert_int_equal(open_as("in/log", &member), -EPERM);
}

static void safe_open_rejects_parent_folders_writable_by_other(void **state)
{
    (void)state;
    char buffer[PATH_MAX];
    assert_int_equal(mkdir(folder_path(&folder, "above", buffer), 0755), 0);
    assert_int_equal(mkdir(folder_path(&folder, "above/in", buffer), 0755), 0);
    set_mode("above", 0777);
    assert_int_equal(open_as("above/in/log", &other), -EPERM);
    set_mode("above", 01777); /* others cannot replace the existing folder */
    assert_int_equal(open_as("above/in/log", &other), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(safe_open_in_safe_folder_succeeds, setup),
        fixture_test(safe_open_rejects_link_as_last_name, setup),
        fixture_test(safe_open_follows_links_of_root_in_safe_folders, setup),
        fixture_test(safe_open_rejects_folders_writable_by_other, setup),
        fixture_test(safe_open_rejects_parent_folders_writable_by_other, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
