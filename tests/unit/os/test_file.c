/* SPDX-License-Identifier: Apache-2.0 */
/* Every test covers both openat2() and our own path walk. */
#include "os/file.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "unit/fixtures.h"
#include "unit/folder.h"
#include "unit/test.h"

enum { OTHER_OWNER = 1234, LINKS_MAX = 16 };

/* Ways to open a file; the guarantees of each must hold for every path. */
enum open_mode { OFF, OFF_WALKING, OWNER, ON, MODES };

static const struct mk_file_open_how hows[MODES] = {
    [OFF] = {.symlink = MK_SYMLINK_OFF},
    [OFF_WALKING] = {.symlink = MK_SYMLINK_OFF, .no_openat2 = true},
    [OWNER] = {.symlink = MK_SYMLINK_OWNER},
    [ON] = {.symlink = MK_SYMLINK_ON},
};

static struct folder top; /* contains `site`, which is served, and files next to it */
static int root;

static void add_absolute_link(const char *name, const char *target)
{
    char buffer[PATH_MAX];
    folder_add_link(&top, name, folder_path(&top, target, buffer));
}

static void add_chain(const char *name, int n)
{
    char link[64], target[64];
    for (int i = 0; i < n; i++) {
        snprintf(link, sizeof link, "site/%s%d", name, i);
        snprintf(target, sizeof target, "%s%d", name, i + 1);
        folder_add_link(&top, link, i + 1 < n ? target : "file");
    }
}

static void add_links(void)
{
    folder_add_link(&top, "site/link", "file");
    folder_add_link(&top, "site/link-of-link", "link");
    folder_add_link(&top, "site/folder-link", "dir");
    folder_add_link(&top, "site/folder-link-slash", "dir/");
    folder_add_link(&top, "site/dir/up", "../file");
    folder_add_link(&top, "site/out", "../secret");
    folder_add_link(&top, "site/out-folder", "../beside");
    folder_add_link(&top, "site/broken", "nothing");
    folder_add_link(&top, "site/file-link-slash", "file/");
    folder_add_link(&top, "site/itself", "itself");
    folder_add_link(&top, "site/tick", "tock");
    folder_add_link(&top, "site/tock", "tick");
    add_absolute_link("site/absolute", "site/file");
    add_absolute_link("site/absolute-folder", "site/dir");
    add_absolute_link("site/absolute-out", "secret");
    add_chain("deep", LINKS_MAX);
    add_chain("deeper", LINKS_MAX + 1);
    if (geteuid() == 0) {
        folder_add_link(&top, "site/foreign", "file");
        folder_add_link(&top, "site/foreign-folder", "dir");
        folder_add_link(&top, "site/to-foreign", "foreign");
        assert_int_equal(fchownat(top.fd, "site/foreign", OTHER_OWNER, 0, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(fchownat(top.fd, "site/foreign-folder", OTHER_OWNER, 0, AT_SYMLINK_NOFOLLOW), 0);
    } else { /* root owns the targets, and we own the links */
        folder_add_link(&top, "site/foreign", "/etc/passwd");
        folder_add_link(&top, "site/foreign-folder", "/etc");
        folder_add_link(&top, "site/to-foreign", "foreign");
    }
}

static int build(void **state)
{
    (void)state;
    folder_setup(&top);
    folder_add_folder(&top, "site");
    folder_add_folder(&top, "beside");
    folder_add_folder(&top, "site/dir");
    folder_add_folder(&top, "site/dir/deep");
    folder_add(&top, "secret", MK_STR("secret"));
    folder_add(&top, "beside/secret", MK_STR("secret"));
    folder_add(&top, "site/file", MK_STR("file"));
    folder_add(&top, "site/passwd", MK_STR("inside"));
    folder_add(&top, "site/dir/file", MK_STR("dir/file"));
    folder_add(&top, "site/dir/deep/file", MK_STR("dir/deep/file"));
    add_links();
    assert_int_equal(mkfifoat(top.fd, "site/fifo", 0644), 0);
    char buffer[PATH_MAX];
    fd_setup(&root);
    return mk_file_open_root(folder_path(&top, "site", buffer), &root);
}

/* Returns the result of opening: the content of a file, "folder", "special", or an error text. */
static const char *outcome(const char *path, enum open_mode open_mode, char buffer[256])
{
    int fd = -1;
    struct stat st;
    mk_err e = mk_file_open_beneath(root, path, &hows[open_mode], &fd);
    if (e) {
        assert_true(e < 0);
        snprintf(buffer, 256, "%s", e == -EXDEV ? mk_err_text(-ELOOP) : mk_err_text(e));
        return buffer;
    }
    assert_int_equal(fstat(fd, &st), 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(fcntl(fd, F_GETFL) & (O_ACCMODE | O_PATH), O_RDONLY);
    if (S_ISREG(st.st_mode)) {
        ssize_t n = read(fd, buffer, 255);
        assert_true(n >= 0);
        buffer[n] = '\0';
    } else {
        snprintf(buffer, 256, S_ISDIR(st.st_mode) ? "folder" : "special");
    }
    mk_fd_close(&fd);
    return buffer;
}

static void expect(const char *path, enum open_mode open_mode, const char *expected)
{
    char buffer[256];
    const char *got = outcome(path, open_mode, buffer);
    if (strcmp(got, expected) != 0)
        fail_msg("%s, way %d: \"%s\", not \"%s\"", path, open_mode, got, expected);
}

static void expect_everywhere(const char *path, const char *expected)
{
    for (enum open_mode open_mode = 0; open_mode < MODES; open_mode++)
        expect(path, open_mode, expected);
}

static void expect_link(const char *path, const char *owner, const char *on)
{
    expect(path, OFF, mk_err_text(-ELOOP));
    expect(path, OFF_WALKING, mk_err_text(-ELOOP));
    expect(path, OWNER, owner);
    expect(path, ON, on);
}

static void file_existing_paths_are_opened(void **state)
{
    (void)state;
    expect_everywhere("file", "file");
    expect_everywhere("dir/file", "dir/file");
    expect_everywhere("dir/deep/file", "dir/deep/file");
    expect_everywhere("dir//deep/file", "dir/deep/file");
    expect_everywhere("dir", "folder");
    expect_everywhere("dir/deep", "folder");
    expect_everywhere("dir/", "folder");
    expect_everywhere("", "folder");
}

static void file_missing_paths_are_not_found(void **state)
{
    (void)state;
    char name[NAME_MAX + 2];
    expect_everywhere("nothing", mk_err_text(-ENOENT));
    expect_everywhere("nothing/file", mk_err_text(-ENOENT));
    expect_everywhere("dir/nothing", mk_err_text(-ENOENT));
    expect_everywhere("nothing/", mk_err_text(-ENOENT));
    memset(name, 'x', sizeof name);
    name[NAME_MAX] = '\0';
    expect_everywhere(name, mk_err_text(-ENOENT));
    name[NAME_MAX] = 'x';
    name[NAME_MAX + 1] = '\0';
    expect_everywhere(name, mk_err_text(-ENAMETOOLONG));
}

static void file_as_folder_is_an_error(void **state)
{
    (void)state;
    expect_everywhere("file/", mk_err_text(-ENOTDIR));
    expect_everywhere("file/x", mk_err_text(-ENOTDIR));
    expect_everywhere("file/x/y", mk_err_text(-ENOTDIR));
}

static void file_fifo_does_not_block(void **state)
{
    (void)state;
    expect_everywhere("fifo", "special");
}

static void file_links_inside_root(void **state)
{
    (void)state;
    expect_link("link", "file", "file");
    expect_link("link-of-link", "file", "file");
    expect_link("absolute", "file", "file");
    expect_link("dir/up", "file", "file");
    expect_link("folder-link", "folder", "folder");
    expect_link("folder-link/", "folder", "folder");
    expect_link("folder-link-slash", "folder", "folder");
}

static void file_links_in_middle_of_path(void **state)
{
    (void)state;
    expect_link("folder-link/file", "dir/file", "dir/file");
    expect_link("folder-link/deep/file", "dir/deep/file", "dir/deep/file");
    expect_link("folder-link-slash/file", "dir/file", "dir/file");
    expect_link("folder-link-slash/up", "file", "file");
    expect_link("absolute-folder/file", "dir/file", "dir/file");
    expect_link("folder-link/up", "file", "file");
    expect_link("folder-link/nothing", mk_err_text(-ENOENT), mk_err_text(-ENOENT));
    expect_link("link/x", mk_err_text(-ENOTDIR), mk_err_text(-ENOTDIR));
    expect_link("link/", mk_err_text(-ENOTDIR), mk_err_text(-ENOTDIR));
}

static void file_links_leaving_root(void **state)
{
    (void)state;
    expect_link("out", "secret", "secret");
    expect_link("absolute-out", "secret", "secret");
    expect_link("out-folder", "folder", "folder");
    expect_link("out-folder/secret", "secret", "secret");
}

static void file_broken_links(void **state)
{
    (void)state;
    expect_link("broken", mk_err_text(-ENOENT), mk_err_text(-ENOENT));
    expect_link("file-link-slash", mk_err_text(-ENOTDIR), mk_err_text(-ENOTDIR));
    expect_link("itself", mk_err_text(-ELOOP), mk_err_text(-ELOOP));
    expect_link("itself/file", mk_err_text(-ELOOP), mk_err_text(-ELOOP));
    expect_link("tick", mk_err_text(-ELOOP), mk_err_text(-ELOOP));
}

static void file_link_depth_is_limited(void **state)
{
    (void)state;
    expect("deep0", OWNER, "file");
    expect("deeper0", OWNER, mk_err_text(-ELOOP));
    expect("deeper1", OWNER, "file");
}

static void file_links_of_other_user(void **state)
{
    (void)state;
    for (enum open_mode open_mode = OFF; open_mode <= OWNER; open_mode++) {
        expect("foreign", open_mode, mk_err_text(-ELOOP));
        expect("foreign-folder", open_mode, mk_err_text(-ELOOP));
        expect("foreign-folder/passwd", open_mode, mk_err_text(-ELOOP));
        expect("to-foreign", open_mode, mk_err_text(-ELOOP));
    }
    if (geteuid() == 0)
        expect("foreign", ON, "file");
    expect("foreign-folder", ON, "folder");
}

static void file_unreadable_is_denied(void **state)
{
    (void)state;
    if (geteuid() == 0)
        skip();
    folder_add(&top, "site/closed", MK_STR("closed"));
    assert_int_equal(fchmodat(top.fd, "site/closed", 0, 0), 0);
    expect_everywhere("closed", mk_err_text(-EACCES));
}

static void file_open_leaks_no_descriptor(void **state)
{
    (void)state;
    static const char *const paths[] = {"file",    "dir",     "folder-link/up", "tick",
                                        "deeper0", "foreign", "file/x"};
    char buffer[256];
    int before = dup(root), after;
    close(before);
    for (size_t i = 0; i < MK_LEN(paths); i++)
        for (enum open_mode open_mode = 0; open_mode < MODES; open_mode++)
            outcome(paths[i], open_mode, buffer);
    after = dup(root);
    close(after);
    assert_int_equal(before, after);
}

static void file_root_must_be_a_folder(void **state)
{
    (void)state;
    char buffer[PATH_MAX];
    int fd = 0;
    assert_int_equal(mk_file_open_root(folder_path(&top, "secret", buffer), &fd), -ENOTDIR);
    assert_int_equal(fd, -1);
    assert_int_equal(mk_file_open_root(folder_path(&top, "nothing", buffer), &fd), -ENOENT);
}

static void file_read_all_respects_buffer_size(void **state)
{
    (void)state;
    char buffer[8], path[PATH_MAX];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer), large = mk_buf_growing(1 << 20);
    assert_int_equal(mk_file_read_all(folder_path(&top, "site/dir/file", path), &out), 0);
    assert_str(mk_buf_str(&out), "dir/file");
    mk_buf_clear(&out);
    assert_int_equal(mk_file_read_all(folder_path(&top, "site/dir/deep/file", path), &out), -EFBIG);
    assert_int_equal(mk_file_read_all(folder_path(&top, "nothing", path), &out), -ENOENT);
    assert_int_equal(mk_file_read_all(folder_path(&top, "site", path), &out), -EISDIR);
    mk_buf_addf(&large, "%100000d", 1);
    folder_add(&top, "large", mk_buf_str(&large));
    mk_buf_clear(&large);
    assert_int_equal(mk_file_read_all(folder_path(&top, "large", path), &large), 0);
    assert_int_equal(large.len, 100000);
    mk_buf_free(&large);
}

/* This must also work where long has 32 bits. */
static void file_larger_than_4_gb_is_opened(void **state)
{
    (void)state;
    const off_t size = (off_t)5 << 30;
    char buffer[PATH_MAX];
    folder_add(&top, "site/large", MK_STR(""));
    assert_int_equal(truncate(folder_path(&top, "site/large", buffer), size), 0);
    for (enum open_mode open_mode = 0; open_mode < MODES; open_mode++) {
        int fd = -1;
        struct stat st;
        assert_int_equal(mk_file_open_beneath(root, "large", &hows[open_mode], &fd), 0);
        assert_int_equal(fstat(fd, &st), 0);
        assert_true(st.st_size == size);
        assert_true(mk_file_is_cached(fd, (uint64_t)size - 1, 1)); /* a hole is read without waiting */
        mk_fd_close(&fd);
    }
    assert_int_equal(unlink(buffer), 0);
}

/* From here on, preadv2() fails in this process as with an old kernel. */
static void forget_preadv2(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_preadv2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = MK_LEN(code), .filter = code};
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void file_without_preadv2_cannot_tell_cached_pages(void **state)
{
    (void)state;
    char byte;
    int fd = -1, status = 0;
    assert_int_equal(mk_file_open_beneath(root, "file", &hows[OFF], &fd), 0);
    pid_t child = fork();
    if (child == 0) {
        forget_preadv2();
        _exit(mk_file_read_nowait(fd, &byte, 1, 0) == -EOPNOTSUPP && mk_file_is_cached(fd, 0, 1) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    mk_fd_close(&fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_existing_paths_are_opened),
        cmocka_unit_test(file_missing_paths_are_not_found),
        cmocka_unit_test(file_as_folder_is_an_error),
        cmocka_unit_test(file_fifo_does_not_block),
        cmocka_unit_test(file_links_inside_root),
        cmocka_unit_test(file_links_in_middle_of_path),
        cmocka_unit_test(file_links_leaving_root),
        cmocka_unit_test(file_broken_links),
        cmocka_unit_test(file_link_depth_is_limited),
        cmocka_unit_test(file_links_of_other_user),
        cmocka_unit_test(file_unreadable_is_denied),
        cmocka_unit_test(file_open_leaks_no_descriptor),
        cmocka_unit_test(file_root_must_be_a_folder),
        cmocka_unit_test(file_read_all_respects_buffer_size),
        cmocka_unit_test(file_larger_than_4_gb_is_opened),
        cmocka_unit_test(file_without_preadv2_cannot_tell_cached_pages),
    };
    return cmocka_run_group_tests(tests, build, harness_teardown);
}
