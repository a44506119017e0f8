/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime_dir.h"

#include <errno.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "stale_dirs.h"

enum { BACKLOG = 4096 };

bool isolate_runtime_dir_format_empty_root(const struct isolate_record *r, char root[ISOLATE_ROOT_MAX])
{
    return snprintf(root, ISOLATE_ROOT_MAX, "%s/none", r->folder) < ISOLATE_ROOT_MAX;
}

/* If root has started the server, the folder belongs to root. Otherwise another process of the workers' user,
 * such as a CGI script, could replace the group's socket with its own and receive the group's requests. */
static int make_folders(const struct isolate_record *r)
{
    char root[ISOLATE_ROOT_MAX];
    bool ok = isolate_runtime_dir_format_empty_root(r, root) && mkdir(r->folder, 0700) == 0 &&
              mkdir(root, 0755) == 0 && chmod(root, 0755) == 0;
    return ok ? 0 : -errno;
}

/* Binds the socket as the workers' user, who must own it: the master may be unable to change the owner later,
 * even as root. During the bind, the folder's group lets this process write to the folder, and no
 * other process of that user. */
static bool bind_socket_as_user(const struct isolate_record *r, int fd)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, r->socket, sizeof r->socket);
    if (chmod(r->folder, 0730) < 0)
        return false;
    mode_t before = umask(0177);
    if (geteuid() == 0)
        (void)setfsuid(r->uid);
    bool ok = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    int e = errno;
    if (geteuid() == 0)
        (void)setfsuid(geteuid());
    (void)umask(before);
    if (chmod(r->folder, 0711) < 0)
        return false;
    errno = e;
    return ok;
}

/* Opens the socket, to which only the public workers can connect. */
static int open_socket(struct isolate_record *r)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool ok = fd >= 0 && bind_socket_as_user(r, fd) && listen(fd, BACKLOG) == 0;
    int e = ok ? 0 : -errno;
    if (!ok && fd >= 0)
        close(fd);
    r->listen_fd = ok ? fd : -1;
    return e;
}

/* Removes folders that earlier servers have left next to our folder. */
static void remove_stale_folders(const struct isolate_record *r)
{
    char base[ISOLATE_FOLDER_MAX];
    memcpy(base, r->folder, sizeof base);
    char *end = strrchr(base, '/');
    if (end)
        *end = '\0';
    isolate_stale_dirs_remove(base);
}

int isolate_runtime_dir_create(struct isolate_record *r)
{
    remove_stale_folders(r);
    int e = make_folders(r);
    return e ? e : open_socket(r);
}

const char *isolate_runtime_dir_name(const struct isolate_record *r)
{
    const char *slash = strrchr(r->folder, '/');
    return slash ? slash + 1 : r->folder;
}

static void remove_cgroup(const struct isolate_record *r)
{
    struct isolate_cgroup_path place;
    char error[ISOLATE_CGROUP_ERROR_MAX];
    if (isolate_cgroup_find_own("/proc/self", &place, error))
        isolate_cgroup_remove(&place, isolate_runtime_dir_name(r));
}

void isolate_runtime_dir_remove(const struct isolate_record *r)
{
    char root[ISOLATE_ROOT_MAX];
    remove_cgroup(r);
    (void)unlink(r->socket);
    if (isolate_runtime_dir_format_empty_root(r, root))
        (void)rmdir(root);
    (void)rmdir(r->folder);
}
