/* SPDX-License-Identifier: Apache-2.0 */
#include "state_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 4, OTHERS_WRITE = S_IWGRP | S_IWOTH };

/* The last ones exist only with certificates on demand. */
static const char *const inner_folders[] = {ACME_HTTP_FOLDER, ACME_ALPN_FOLDER, ACME_ON_DEMAND_FOLDER,
                                            ACME_ON_DEMAND_FOLDER "/certificates"};
enum { FOLDERS_WITHOUT_DEMAND = 2 };

struct owner {
    bool is_other; /* the workers' user is not the user of this process */
    uid_t uid;
    gid_t gid;
};

static struct owner worker_owner(const struct mk_config *config)
{
    struct owner o = {.uid = geteuid(), .gid = getegid()};
    o.is_other = mk_config_user(config, &o.uid, &o.gid);
    return o;
}

/* Returns the user's name, or the number. The next call overwrites the text. */
static const char *user_name(uid_t uid)
{
    static char number[24];
    const struct passwd *pw = getpwuid(uid);
    snprintf(number, sizeof number, "%u", (unsigned)uid);
    return pw ? pw->pw_name : number;
}

/* ---- Checking ---- */

/* Returns whether only this user and root can replace the file or folder. lstat() also returns the owner of a link. */
static bool is_entry_protected(const char *path)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT;
    bool is_sticky = st.st_mode & S_ISVTX;
    return (st.st_uid == 0 || st.st_uid == geteuid()) &&
           (S_ISLNK(st.st_mode) || is_sticky || !(st.st_mode & OTHERS_WRITE));
}

static bool are_parts_protected(const char *path)
{
    char buf[PATH_MAX];
    size_t len = strlen(path);
    if (len >= sizeof buf)
        return false;
    memcpy(buf, path, len + 1);
    for (size_t i = 1; i <= len; i++) {
        char c = buf[i];
        buf[i] = '\0';
        if ((c == '/' || !c) && !is_entry_protected(buf))
            return false;
        buf[i] = c;
    }
    return true;
}

/* Returns whether no other user can make the path refer to another folder, whose owner would then change. */
static bool is_path_protected(const char *path)
{
    char real[PATH_MAX];
    return are_parts_protected(path) && (!realpath(path, real) || are_parts_protected(real));
}

/* Returns whether the folder belongs to the master and no other user can write to it. If so,
 * acme_state_folder_create() changes its owner. */
static bool can_change_owner(const struct owner *o, const struct stat *st)
{
    return o->is_other && st->st_uid == geteuid() && !(st->st_mode & OTHERS_WRITE);
}

static void report_owner(struct mk_config *config, const struct acme_settings *s, const char *path, uid_t uid,
                         uid_t expected)
{
    char owner[64];
    snprintf(owner, sizeof owner, "%s", user_name(uid));
    if (geteuid() == 0)
        mk_config_error(config, s, "StateFolder", "the folder %s belongs to %s, but workers run as %s", path,
                        owner, user_name(expected));
    else
        mk_config_warn(config, s, "StateFolder", "the folder %s belongs to %s, but this process runs as %s",
                       path, owner, user_name(expected));
    mk_config_hint(config, "change the owner: `chown -R %s %s`", user_name(expected), s->state.p);
}

/* Returns whether the folder exists and is correct or can be corrected. */
static bool check_state_folder(struct mk_config *config, const struct acme_settings *s, const struct owner *o,
                               const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return false;
    if (!S_ISDIR(st.st_mode)) {
        mk_config_error(config, s, "StateFolder", "%s is not a folder", path);
        return false;
    }
    if (st.st_uid != o->uid && !can_change_owner(o, &st)) {
        report_owner(config, s, path, st.st_uid, o->uid);
        return false;
    }
    if (st.st_mode & OTHERS_WRITE) {
        mk_config_error(config, s, "StateFolder", "other users can write to the folder %s", path);
        mk_config_hint(config, "it contains keys: `chmod go-w %s`", path);
        return false;
    }
    return true;
}

/* Returns whether the workers' user can traverse a parent folder. The check ignores the user's supplementary
 * groups. */
static bool can_search_folder(const struct owner *o, const struct stat *st)
{
    mode_t bit = st->st_uid == o->uid ? S_IXUSR : st->st_gid == o->gid ? S_IXGRP : S_IXOTH;
    return o->uid == 0 || st->st_mode & bit;
}

static void check_parent_folders(struct mk_config *config, const struct acme_settings *s,
                                 const struct owner *o)
{
    char buf[PATH_MAX];
    struct stat st;
    if (s->state.len >= sizeof buf)
        return;
    memcpy(buf, s->state.p, s->state.len + 1);
    for (char *slash = buf; (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        if (stat(buf, &st) == 0 && !can_search_folder(o, &st)) {
            mk_config_warn(config, s, "StateFolder", "workers run as %s and cannot search the folder %s",
                           user_name(o->uid), buf);
            mk_config_hint(config, "let others search it: `chmod o+x %s`", buf);
            return;
        }
        *slash = '/';
    }
}

/* Returns whether the helper creates files with this name; `lost+found` belongs to a mounted file system. */
static bool is_known_file_name(const char *name)
{
    static const char *const names[] = {"account.key",    "account.json",  "account.lock",
                                        "lock",           "certificates",  "orders",
                                        "failures",       "renewal",       ACME_HTTP_FOLDER,
                                        ACME_ALPN_FOLDER, ACME_DNS_FOLDER, ACME_ON_DEMAND_FOLDER,
                                        "lost+found"};
    for (size_t i = 0; i < MK_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strncmp(name, ".new-", 5) == 0;
}

/* Reports files that acme did not create: the workers' user becomes the owner of the folder and everything in
 * it, so it must not be a shared folder such as /etc. */
static void report_unknown_files(struct mk_config *config, const struct acme_settings *s)
{
    DIR *d = opendir(s->state.p);
    const struct dirent *entry = NULL;
    while (d && (entry = readdir(d)) && is_known_file_name(entry->d_name))
        continue;
    if (entry) {
        mk_config_error(
            config, s, "StateFolder",
            "the folder %s contains %s, which acme did not create: workers would become its owner",
            s->state.p, entry->d_name);
        mk_config_hint(config, "use a folder for acme alone, such as /var/lib/monkey/acme");
    }
    if (d)
        closedir(d);
}

static void report_unprotected_path(struct mk_config *config, const struct acme_settings *s,
                                    const struct owner *o)
{
    if (is_path_protected(s->state.p))
        return;
    mk_config_error(
        config, s, "StateFolder",
        "the folder %s belongs to root, and another user can replace it or a folder above it: its "
        "owner is not changed",
        s->state.p);
    mk_config_hint(config, "if it is the right folder, change its owner: `chown -R %s %s`", user_name(o->uid),
                   s->state.p);
}

void acme_state_folder_check(struct mk_config *config, const struct acme_settings *s)
{
    struct owner o = worker_owner(config);
    struct stat st;
    char path[PATH_MAX];
    check_parent_folders(config, s, &o);
    if (!check_state_folder(config, s, &o, s->state.p) || stat(s->state.p, &st) < 0)
        return;
    if (can_change_owner(&o, &st)) {
        report_unprotected_path(config, s, &o);
        report_unknown_files(config, s);
        return;
    }
    for (size_t i = 0; i < MK_LEN(inner_folders); i++) {
        snprintf(path, sizeof path, "%s/%s", s->state.p, inner_folders[i]);
        if (stat(path, &st) == 0 && st.st_uid != o.uid)
            report_owner(config, s, path, st.st_uid, o.uid);
    }
}

/* ---- Creating ---- */

/* The folders that this call has created, for removal on failure. */
struct created {
    size_t parents; /* length of the path to the first missing folder; 0: none was missing */
    bool state, inner[MK_LEN(inner_folders)];
};

/* Creates missing parent folders, accessible to everyone whatever the umask. */
static void create_parents(const char *path, struct created *created)
{
    char buf[PATH_MAX];
    size_t len = strlen(path);
    if (len >= sizeof buf)
        return;
    memcpy(buf, path, len + 1);
    for (size_t i = 1; i < len; i++) {
        if (buf[i] != '/')
            continue;
        buf[i] = '\0';
        if (mkdir(buf, 0755) == 0) {
            (void)chmod(buf, 0755);
            created->parents = created->parents ? created->parents : i;
        }
        buf[i] = '/';
    }
}

static void remove_created(int fd, const char *path, const struct created *created)
{
    char buf[PATH_MAX];
    size_t len = strlen(path);
    for (size_t i = MK_LEN(inner_folders); fd >= 0 && i-- > 0;)
        if (created->inner[i])
            (void)unlinkat(fd, inner_folders[i], AT_REMOVEDIR);
    if (created->state)
        (void)rmdir(path);
    if (!created->parents || len >= sizeof buf)
        return;
    memcpy(buf, path, len + 1);
    for (size_t i = len; i-- > created->parents;) {
        if (buf[i] != '/')
            continue;
        buf[i] = '\0';
        (void)rmdir(buf);
    }
    buf[created->parents] = '\0';
    (void)rmdir(buf);
}

/* Returns a descriptor or a negated errno value. Does not change the owner of a new folder. The state folder may be a
 * link that the administrator has created. */
static int open_or_create_folder(int at, const char *path, bool *is_new)
{
    *is_new = mkdirat(at, path, 0700) == 0;
    if (!*is_new && errno != EEXIST)
        return -errno;
    bool may_be_link = at == AT_FDCWD && !*is_new;
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (may_be_link ? 0 : O_NOFOLLOW));
    return fd < 0 ? -errno : fd;
}

static int chown_folder(int fd, const struct owner *o, unsigned depth);

/* A file with several hard links may belong to someone else. */
static int chown_opened_entry(int entry, const struct owner *o, unsigned depth)
{
    struct stat st;
    if (fstat(entry, &st) < 0)
        return -errno;
    if (st.st_uid != geteuid() || (!S_ISDIR(st.st_mode) && !(S_ISREG(st.st_mode) && st.st_nlink == 1)))
        return 0;
    if (!S_ISDIR(st.st_mode))
        return fchownat(entry, "", o->uid, o->gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
    int fd = openat(entry, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : chown_folder(fd, o, depth + 1);
}

/* Does not follow links. Checks and changes the same descriptor, because another user may be able to replace the entry of a
 * subfolder in between. */
static int chown_entry(int at, const char *name, const struct owner *o, unsigned depth)
{
    int entry = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (entry < 0)
        return errno == ENOENT ? 0 : -errno;
    int e = chown_opened_entry(entry, o, depth);
    close(entry);
    return e;
}

/* Changes the owner of the folder after that of its contents, so that no other user can change the contents
 * in the meantime. Closes the descriptor. */
static int chown_folder(int fd, const struct owner *o, unsigned depth)
{
    int e = depth > DEPTH_MAX ? -ELOOP : 0;
    DIR *d = fdopendir(fd);
    if (!d) {
        e = -errno;
        close(fd);
        return e;
    }
    for (const struct dirent *entry; !e && (entry = readdir(d));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            e = chown_entry(fd, entry->d_name, o, depth);
    if (!e && fchown(fd, o->uid, o->gid) < 0)
        e = -errno;
    closedir(d);
    return e;
}

static int create_subfolders(int at, size_t n, struct created *created)
{
    int e = 0;
    for (size_t i = 0; i < n && !e; i++) {
        int fd = open_or_create_folder(at, inner_folders[i], &created->inner[i]);
        e = fd < 0 ? fd : 0;
        if (fd >= 0)
            close(fd);
    }
    return e;
}

/* Changes the owner of new folders in a folder that already belongs to the workers. */
static int chown_new_subfolders(int at, const struct owner *o, const struct created *created)
{
    int e = 0;
    for (size_t i = 0; i < MK_LEN(inner_folders) && !e; i++)
        if (o->is_other && created->inner[i])
            e = chown_entry(at, inner_folders[i], o, 0);
    return e;
}

static int chown_all(int fd, const char *path, const struct owner *o, const struct created *created)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!can_change_owner(o, &st))
        return chown_new_subfolders(fd, o, created);
    if (!created->state && !is_path_protected(path))
        return -EPERM;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? -errno : chown_folder(copy, o, 0);
}

int acme_state_folder_create(struct mk_config *config, const struct acme_settings *s, bool on_demand)
{
    struct owner o = worker_owner(config);
    struct created created = {0};
    create_parents(s->state.p, &created);
    int fd = open_or_create_folder(AT_FDCWD, s->state.p, &created.state);
    int e = fd < 0
                ? fd
                : create_subfolders(fd, on_demand ? MK_LEN(inner_folders) : FOLDERS_WITHOUT_DEMAND, &created);
    const char *what = "create";
    if (!e) {
        what = "change the owner of";
        e = chown_all(fd, s->state.p, &o, &created);
    }
    if (e)
        remove_created(fd, s->state.p, &created);
    if (fd >= 0)
        close(fd);
    if (e) {
        mk_config_error(config, s, "StateFolder", "cannot %s the folder %s: %s", what, s->state.p,
                        strerror(-e));
        mk_config_hint(config, "create it for the workers' user only: `install -d -m 700 -o %s %s`",
                       user_name(o.uid), s->state.p);
    }
    return e;
}
