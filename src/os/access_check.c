/* SPDX-License-Identifier: Apache-2.0 */
#include "os/access_check.h"

#include <grp.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

enum { GROUPS_MAX = 256, READ = 4, WRITE = 2, SEARCH = 1 };

static bool is_in_group(const struct mk_identity *id, gid_t gid)
{
    gid_t groups[GROUPS_MAX];
    int n = GROUPS_MAX;
    if (getgrouplist(id->user, id->gid, groups, &n) < 0)
        n = GROUPS_MAX;
    for (int i = 0; i < n; i++)
        if (groups[i] == gid)
            return true;
    return gid == id->gid;
}

static bool may_access(const struct mk_identity *id, const struct stat *st, unsigned expected)
{
    unsigned mode = st->st_mode;
    if (id->uid == 0)
        return true;
    if (st->st_uid == id->uid)
        mode >>= 6;
    else if (is_in_group(id, st->st_gid))
        mode >>= 3;
    return (mode & expected) == expected;
}

static bool has_acl(const char *path)
{
    return getxattr(path, "system.posix_acl_access", NULL, 0) >= 0;
}

static bool is_denied(const struct mk_identity *id, const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !may_access(id, &st, S_ISDIR(st.st_mode) ? SEARCH : READ) &&
           !has_acl(path);
}

bool mk_access_check_may_write(const struct mk_identity *id, const char *folder)
{
    struct stat st;
    return stat(folder, &st) < 0 || may_access(id, &st, WRITE | SEARCH) || has_acl(folder);
}

size_t mk_access_check_find_denied(const struct mk_identity *id, const char *path, size_t from)
{
    char part[PATH_MAX];
    size_t len = strlen(path);
    for (size_t end = from; end <= len && end < sizeof part; end++) {
        if (end < len && end != from && path[end] != '/')
            continue;
        memcpy(part, path, end);
        part[end] = '\0';
        if (is_denied(id, part))
            return end;
    }
    return 0;
}
