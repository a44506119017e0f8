/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

struct owner {
    bool is_other; /* than the own one */
    uid_t uid;
    gid_t gid;
};

/* Folders above it have the usual mode. */
static void make_way(const char *path)
{
    char room[PATH_MAX];
    size_t len = strlen(path);
    if (len >= sizeof room)
        return;
    memcpy(room, path, len + 1);
    for (size_t i = 1; i < len; i++) {
        if (room[i] != '/')
            continue;
        room[i] = '\0';
        (void)mkdir(room, 0755);
        room[i] = '/';
    }
}

/* Changes the owner only if the folder belongs to this process: the owner of the parent folder could have
 * replaced it. */
static int give(int fd, const struct owner *o)
{
    struct stat st;
    if (!o->is_other || fstat(fd, &st) < 0 || st.st_uid != geteuid() || st.st_uid == o->uid)
        return 0;
    return fchown(fd, o->uid, o->gid) < 0 ? -errno : 0;
}

/* A descriptor, or a negated errno value. Does not change the owner of a new folder. */
static int make(int at, const char *path, bool *is_new)
{
    *is_new = mkdirat(at, path, 0700) == 0;
    if (!*is_new && errno != EEXIST)
        return -errno;
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (at == AT_FDCWD ? 0 : O_NOFOLLOW));
    return fd < 0 ? -errno : fd;
}

static int make_inner(int at, const struct owner *o)
{
    static const char *const folders[] = {ACME_HTTP_FOLDER, ACME_ALPN_FOLDER};
    int e = 0;
    for (size_t i = 0; i < MK_LEN(folders) && !e; i++) {
        bool is_new;
        int fd = make(at, folders[i], &is_new);
        e = fd < 0 ? fd : is_new ? give(fd, o) : 0;
        if (fd >= 0)
            close(fd);
    }
    return e;
}

int acme_state_make(struct mk_config *config, const struct acme_settings *s)
{
    struct owner o;
    bool is_new;
    o.is_other = mk_config_user(config, &o.uid, &o.gid);
    make_way(s->state.p);
    int fd = make(AT_FDCWD, s->state.p, &is_new);
    int e = fd < 0 ? fd : make_inner(fd, &o);
    if (!e && is_new)
        e = give(fd, &o);
    if (fd >= 0)
        close(fd);
    if (e) {
        mk_config_error(config, s, "State", "cannot create the folder %s: %s", s->state.p, strerror(-e));
        mk_config_hint(config, "create it yourself, for the user of the workers alone");
    }
    return e;
}
