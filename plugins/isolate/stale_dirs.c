/* SPDX-License-Identifier: Apache-2.0 */
#include "stale_dirs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Younger folders are kept, because another server may be about to listen there. */
enum { YOUNG_S = 10 };

static bool is_runtime_dir_name(const char *name)
{
    static const char begin[] = "monkey-";
    const char *number = name + sizeof begin - 1;
    return strncmp(name, begin, sizeof begin - 1) == 0 && strlen(number) == 16 &&
           strspn(number, "0123456789abcdef") == 16;
}

/* Checks the owner, because other users may also have folders there, and the age. */
static bool is_owned_and_old_folder(int folder)
{
    struct stat st;
    uid_t self = (uid_t)setfsuid((uid_t)-1);
    return fstat(folder, &st) == 0 && st.st_uid == self && !(st.st_mode & 022) &&
           time(NULL) - st.st_mtime > YOUNG_S;
}

static bool is_socket(int folder, const char *name)
{
    struct stat st;
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode);
}

/* Returns true only if the kernel refuses the connection. */
static bool is_socket_dead(int folder, const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int n = snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/%s", folder, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool refused = fd >= 0 && n > 0 && (size_t)n < sizeof at.sun_path &&
                   connect(fd, (struct sockaddr *)&at, sizeof at) < 0 && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return refused;
}

/* Finds the first socket in the folder; a group has only one. Returns false if there is none. */
static bool find_socket(int folder, char name[NAME_MAX + 1])
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    bool found = false;
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        found = is_socket(folder, e->d_name);
        (void)snprintf(name, NAME_MAX + 1, "%s", e->d_name);
    }
    if (dir)
        closedir(dir);
    else if (copy >= 0)
        close(copy);
    return found;
}

static void remove_stale_dir(int base, const char *name)
{
    char path[NAME_MAX + 1];
    int folder = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool has_gone = folder >= 0 && is_owned_and_old_folder(folder) && find_socket(folder, path) &&
                    is_socket_dead(folder, path);
    if (has_gone && unlinkat(folder, path, 0) == 0) {
        (void)unlinkat(folder, "none", AT_REMOVEDIR);
        (void)unlinkat(base, name, AT_REMOVEDIR);
    }
    if (folder >= 0)
        close(folder);
}

void isolate_stale_dirs_remove(const char *base)
{
    DIR *dir = opendir(base);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (is_runtime_dir_name(e->d_name))
            remove_stale_dir(dirfd(dir), e->d_name);
    if (dir)
        closedir(dir);
}
