/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include <errno.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "stale.h"

enum { BACKLOG = 4096 };

bool isolate_place_root(const struct isolate_record *r, char root[ISOLATE_ROOT_MAX])
{
    return snprintf(root, ISOLATE_ROOT_MAX, "%s/none", r->folder) < ISOLATE_ROOT_MAX;
}

/* As the user of the workers, who own folder and socket: the master may have no right to give them away,
 * even if root has started it. */
static void borrow(const struct isolate_record *r)
{
    if (geteuid() == 0) {
        (void)setfsgid(r->gid);
        (void)setfsuid(r->uid);
    }
}

static void give_back(void)
{
    if (geteuid() == 0) {
        (void)setfsuid(geteuid());
        (void)setfsgid(getegid());
    }
}

static int make_folders(const struct isolate_record *r)
{
    char root[ISOLATE_ROOT_MAX];
    bool ok = isolate_place_root(r, root) && mkdir(r->folder, 0711) == 0 && chmod(r->folder, 0711) == 0 &&
              mkdir(root, 0755) == 0 && chmod(root, 0755) == 0;
    return ok ? 0 : -errno;
}

/* Only those workers can connect. */
static int open_socket(struct isolate_record *r)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, r->socket, sizeof r->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(0177);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, BACKLOG) == 0;
    int e = ok ? 0 : -errno;
    (void)umask(before);
    if (!ok && fd >= 0)
        close(fd);
    r->listen_fd = ok ? fd : -1;
    return e;
}

/* What servers before us have left beside our own. */
static void remove_stale(const struct isolate_record *r)
{
    char base[ISOLATE_FOLDER_MAX];
    memcpy(base, r->folder, sizeof base);
    char *end = strrchr(base, '/');
    if (end)
        *end = '\0';
    isolate_stale_remove(base);
}

int isolate_place_open(struct isolate_record *r)
{
    borrow(r);
    remove_stale(r);
    int e = make_folders(r);
    if (!e)
        e = open_socket(r);
    give_back();
    return e;
}

const char *isolate_place_name(const struct isolate_record *r)
{
    const char *slash = strrchr(r->folder, '/');
    return slash ? slash + 1 : r->folder;
}

static void remove_limits(const struct isolate_record *r)
{
    struct isolate_quota_place place;
    char why[ISOLATE_QUOTA_WHY];
    if (isolate_quota_find("/proc/self", &place, why))
        isolate_quota_remove(&place, isolate_place_name(r));
}

void isolate_place_remove(const struct isolate_record *r)
{
    char root[ISOLATE_ROOT_MAX];
    remove_limits(r);
    borrow(r);
    (void)unlink(r->socket);
    if (isolate_place_root(r, root))
        (void)rmdir(root);
    (void)rmdir(r->folder);
    give_back();
}
