/* SPDX-License-Identifier: Apache-2.0 */
#include "private_dir.h"

#include "run_state.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* The maximum length of the base folder, because socket paths must be short. */
enum { BASE_MAX = 60 };

static const char name[] = "monkey-run-";

static void remove_entry(const char *folder, const char *leaf, bool is_folder)
{
    char path[PATH_MAX];
    if (dev_paths_format(path, "%s/%s", folder, leaf))
        (void)(is_folder ? rmdir(path) : unlink(path));
}

static void remove_sockets(const char *folder)
{
    char pattern[PATH_MAX];
    glob_t found;
    if (!dev_paths_format(pattern, "%s/back-[0-9]*", folder) || glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        (void)unlink(found.gl_pathv[i]);
    globfree(&found);
}

void dev_private_dir_remove(const char *folder)
{
    static const char *const files[] = {"front.conf", "back.conf", "back", "ipc"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        remove_entry(folder, files[i], false);
    remove_sockets(folder);
    dev_run_state_remove(folder);
    remove_entry(folder, "none", true);
    (void)rmdir(folder);
}

/* ---- Stale folders ---- */

/* Returns whether the `monkey run` that created this folder was killed. In this case, no process listens on
 * the socket in it. A `monkey run` that is just starting has no socket yet. */
static bool is_stale_dir(const char *folder)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat st;
    int len = snprintf(a.sun_path, sizeof a.sun_path, "%s/ipc", folder);
    if (lstat(folder, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || len < 0 ||
        len >= (int)sizeof a.sun_path)
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool refused = fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof a) < 0 && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return refused;
}

static void remove_stale_dirs(const char *base)
{
    char pattern[PATH_MAX];
    glob_t found;
    if (!dev_paths_format(pattern, "%s/%s*", base, name) || glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (is_stale_dir(found.gl_pathv[i]))
            dev_private_dir_remove(found.gl_pathv[i]);
    globfree(&found);
}

static bool make_temporary_dir(char folder[PATH_MAX], const char *base)
{
    return dev_paths_format(folder, "%s/%sXXXXXX", base, name) && mkdtemp(folder);
}

bool dev_private_dir_create(char folder[PATH_MAX])
{
    const char *base = getenv("XDG_RUNTIME_DIR");
    bool is_short = base && *base == '/' && strlen(base) < BASE_MAX;
    remove_stale_dirs(is_short ? base : "/tmp");
    if ((is_short && make_temporary_dir(folder, base)) || make_temporary_dir(folder, "/tmp"))
        return true;
    fprintf(stderr, "monkey run: cannot create a folder in /tmp: %s\n", strerror(errno));
    folder[0] = '\0';
    return false;
}

/* ---- Tests ---- */

enum { OPEN_FOLDERS_MAX = 16 };

static const char test_name[] = "monkey-test-";
static int test_lock = -1; /* locks the file `lock` in the folder until this process ends */

static int remove_tree_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    (void)remove(path);
    return 0;
}

void dev_private_dir_remove_tree(const char *folder)
{
    if (*folder)
        (void)nftw(folder, remove_tree_entry, OPEN_FOLDERS_MAX, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    if (test_lock >= 0)
        close(test_lock);
    test_lock = -1;
}

/* Returns whether the `monkey test` that created this folder was killed: its lock is free. */
static bool is_stale_test_dir(const char *folder)
{
    char path[PATH_MAX];
    struct stat st;
    if (lstat(folder, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        !dev_paths_format(path, "%s/lock", folder))
        return false;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    bool is_stale = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0)
        close(fd);
    return is_stale;
}

static void remove_stale_test_dirs(const char *base)
{
    char pattern[PATH_MAX];
    glob_t found;
    if (!dev_paths_format(pattern, "%s/%s*", base, test_name) || glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (is_stale_test_dir(found.gl_pathv[i]))
            dev_private_dir_remove_tree(found.gl_pathv[i]);
    globfree(&found);
}

bool dev_private_dir_create_for_tests(char folder[PATH_MAX])
{
    char path[PATH_MAX], lock[PATH_MAX];
    const char *base = getenv("TMPDIR");
    if (!base || *base != '/' || strlen(base) >= BASE_MAX)
        base = "/tmp";
    remove_stale_test_dirs(base);
    bool ok = dev_paths_format(folder, "%s/%sXXXXXX", base, test_name) && mkdtemp(folder) &&
              dev_paths_format(path, "%s/new", folder) && dev_paths_format(lock, "%s/lock", folder) &&
              (test_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) >= 0 &&
              flock(test_lock, LOCK_EX | LOCK_NB) == 0 &&
              rename(path, lock) == 0; /* another `monkey test` never sees the file unlocked */
    if (!ok) {
        fprintf(stderr, "monkey test: cannot create a folder in %s: %s\n", base, strerror(errno));
        folder[0] = '\0';
    }
    return ok;
}
