/* SPDX-License-Identifier: Apache-2.0 */
#include "socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 64, NAME_MAX_LEN = CHEETAH_PATH_MAX + 16 };

struct name {
    char path[NAME_MAX_LEN];
};

/* Returns the temporary name of the socket while it is created. */
static struct name temporary_socket_name(const struct cheetah *c)
{
    struct name n;
    snprintf(n.path, sizeof n.path, "%s.%d", c->settings.path.p, (int)getpid());
    return n;
}

/* Returns the name of a link to the predecessor's socket, which restores that socket if the upgrade fails. */
static struct name backup_socket_name(const struct cheetah *c)
{
    struct name n;
    snprintf(n.path, sizeof n.path, "%s.before", c->settings.path.p);
    return n;
}

/* Removes a file that a dead master has left behind, but only if it is a socket. */
static void remove_leftover_file(const char *path)
{
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        (void)unlink(path);
}

static struct sockaddr_un unix_address(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    return a;
}

static int report_socket_error(struct mk_config *config, const struct cheetah *c, const char *what, int error)
{
    mk_config_error(config, c->section, "Socket", "the socket %s cannot be %s: %s", c->settings.path.p, what,
                    strerror(error));
    if (error == ENOENT)
        mk_config_hint(config, "create its folder, or set another Socket in [CHEETAH]");
    else if (error == EACCES || error == EROFS || (error == EPERM && c->group == getegid()))
        mk_config_hint(config, "set a Socket in [CHEETAH] where this user can create one");
    else if (error == EPERM)
        mk_config_hint(config, "only root and members of a group can assign a file to that group");
    return -EINVAL;
}

/* ---- Folder ---- */

/* Rejects a world-writable folder, because any user could replace the socket in it. */
static int check_socket_folder(struct mk_config *config, const struct cheetah *c)
{
    mk_str path = c->settings.path;
    struct name folder;
    struct stat st;
    size_t slash = mk_str_find_last(path, '/');
    snprintf(folder.path, sizeof folder.path, "%.*s", (int)slash + 1, path.p);
    /* Without a service manager, the default folder does not exist yet. */
    if (mk_str_eq(path, MK_STR(CHEETAH_SOCKET)))
        (void)mkdir(CHEETAH_FOLDER, 0755);
    if (stat(folder.path, &st) < 0)
        return report_socket_error(config, c, "created", errno);
    if (!(st.st_mode & S_IWOTH) || (st.st_mode & S_ISVTX))
        return 0;
    mk_config_error(config, c->section, "Socket",
                    "the folder %s is world-writable: any user could replace "
                    "the socket",
                    folder.path);
    mk_config_hint(config, "set a Socket in [CHEETAH] in a folder of your own");
    return -EINVAL;
}

/* ---- Existing files ---- */

enum socket_state { NOTHING, STALE, PREDECESSOR };

/* The kernel reports which process listens on a socket. If it is this process, or after an upgrade its
 * parent, the socket belongs to the previous configuration. */
static int find_listening_process(struct mk_config *config, const struct cheetah *c, int fd,
                                  enum socket_state *out)
{
    struct sockaddr_un address = unix_address(c->settings.path.p);
    struct ucred cred = {0};
    socklen_t len = sizeof cred;
    *out = STALE;
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) < 0 && errno != EAGAIN)
        return errno == ECONNREFUSED || errno == ENOENT ? 0 : report_socket_error(config, c, "taken", errno);
    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
    *out = PREDECESSOR;
    if (cred.pid > 0 && (cred.pid == getpid() || cred.pid == getppid()))
        return 0;
    mk_config_error(config, c->section, "Socket", "another server is listening at %s: process %d",
                    c->settings.path.p, (int)cred.pid);
    mk_config_hint(config, "each server needs its own Socket in [CHEETAH]");
    return -EINVAL;
}

static int check_existing_path(struct mk_config *config, const struct cheetah *c, enum socket_state *out)
{
    struct stat st;
    *out = NOTHING;
    if (lstat(c->settings.path.p, &st) < 0)
        return errno == ENOENT ? 0 : report_socket_error(config, c, "created", errno);
    if (!S_ISSOCK(st.st_mode)) {
        mk_config_error(config, c->section, "Socket", "%s exists and is not a socket", c->settings.path.p);
        mk_config_hint(config, "remove it, or set another Socket in [CHEETAH]");
        return -EINVAL;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return report_socket_error(config, c, "taken", errno);
    int e = find_listening_process(config, c, fd, out);
    close(fd);
    return e;
}

/* ---- Creation ---- */

/* Creates the socket with the right group from the start: a process may be able to change its own group, but
 * not the group of a file. */
static int bind_with_group(int fd, const char *path, gid_t group)
{
    struct sockaddr_un address = unix_address(path);
    gid_t own = getegid();
    bool changed = group != own && setegid(group) == 0;
    remove_leftover_file(path);
    int e =
        fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 ? errno : 0;
    if (changed && setegid(own) < 0 && !e)
        e = errno;
    return e;
}

/* Sets the group and the mode, after which other users can connect. */
static int listen_and_chmod(struct cheetah *c, const char *path)
{
    struct stat st;
    int here = AT_FDCWD, flags = AT_SYMLINK_NOFOLLOW;
    if (fstatat(here, path, &st, flags) < 0)
        return errno;
    if (st.st_gid != c->group && fchownat(here, path, (uid_t)-1, c->group, flags) < 0)
        return errno;
    if (listen(c->fd, BACKLOG) < 0 || fchmodat(here, path, c->settings.mode, flags) < 0 ||
        fstatat(here, path, &st, flags) < 0)
        return errno;
    c->dev = st.st_dev;
    c->ino = st.st_ino;
    return 0;
}

static int rename_into_place(struct cheetah *c, const char *path, enum socket_state socket_state)
{
    struct name before = backup_socket_name(c);
    remove_leftover_file(before.path);
    c->has_before = socket_state == PREDECESSOR && link(c->settings.path.p, before.path) == 0;
    if (rename(path, c->settings.path.p) == 0)
        return 0;
    int e = errno;
    if (c->has_before)
        (void)unlink(before.path);
    return e;
}

static int create_socket(struct mk_config *config, struct cheetah *c, enum socket_state socket_state)
{
    struct name name = temporary_socket_name(c);
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0)
        return report_socket_error(config, c, "created", errno);
    int e = bind_with_group(c->fd, name.path, c->group);
    if (e)
        return report_socket_error(config, c, "created", e);
    e = listen_and_chmod(c, name.path);
    if (!e)
        e = rename_into_place(c, name.path, socket_state);
    if (!e) {
        c->master = getpid();
        return 0;
    }
    (void)unlink(name.path);
    return report_socket_error(config, c, "created", e);
}

int cheetah_socket_open(struct mk_config *config, struct cheetah *c)
{
    enum socket_state socket_state;
    c->owner = geteuid();
    c->group = c->settings.group.name.p ? c->settings.group.gid : getegid();
    int e = check_socket_folder(config, c);
    if (!e)
        e = check_existing_path(config, c, &socket_state);
    return e ? e : create_socket(config, c, socket_state);
}

/* ---- Removal ---- */

static bool is_own_socket_file(const struct cheetah *c, const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && st.st_dev == c->dev && st.st_ino == c->ino;
}

void cheetah_socket_close(struct cheetah *c)
{
    struct name before = backup_socket_name(c);
    if (c->master && c->master == getpid()) {
        bool is_in_place = is_own_socket_file(c, c->settings.path.p);
        if (is_in_place && !(c->has_before && rename(before.path, c->settings.path.p) == 0))
            (void)unlink(c->settings.path.p);
        else if (!is_in_place && is_own_socket_file(c, before.path))
            (void)unlink(before.path);
    }
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->master = 0;
}
