/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/gateway_script.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0: a regular file; -EISDIR: a folder; -EACCES: anything else; or why it cannot be opened. */
static int look(const struct mk_request *request, mk_str path)
{
    struct stat st;
    int fd = mk_request_open(request, path);
    if (fd < 0)
        return fd;
    int e = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : S_ISDIR(st.st_mode) ? -EISDIR : -EACCES;
    close(fd);
    return e;
}

/* Is there a part that begins with a dot? */
static bool is_hidden(mk_str path)
{
    for (size_t i = 0; i + 1 < path.len; i++)
        if (path.p[i] == '/' && path.p[i + 1] == '.')
            return true;
    return false;
}

static unsigned status_of(int e)
{
    switch (e) {
    case 0:
        return 0;
    case -EACCES:
    case -EPERM:
    case -ELOOP:
    case -EXDEV:
        return 403;
    case -ENOMEM:
    case -EMFILE:
    case -ENFILE:
    case -EAGAIN:
        return 503;
    case -EIO:
    case -EBADMSG:
    case -ESTALE:
        return 500;
    default:
        return 404;
    }
}

static size_t part_end(mk_str path, size_t from)
{
    size_t slash = mk_str_find(mk_str_skip(path, from), '/');
    return slash == MK_STR_NONE ? path.len : from + slash;
}

unsigned mk_gateway_script_find(const struct mk_request *request, mk_str split, mk_str *name, mk_str *info)
{
    mk_str path = mk_request_path(request);
    int e = -ENOENT;
    *name = *info = path;
    if (mk_request_has_encoded_slash(request) || !mk_str_starts(path, MK_STR("/")))
        return 404;
    *name = MK_ABSENT;
    for (size_t end = 0; end < path.len;) {
        end = part_end(path, end + 1);
        mk_str candidate = mk_str_first(path, end);
        if (!mk_str_ends(candidate, split))
            continue;
        *name = candidate;
        *info = mk_str_skip(path, end);
        e = look(request, candidate);
        if (e == -EISDIR)
            continue;
        if (e == 0 && is_hidden(candidate) && !mk_request_shows_dot_files(request))
            return 403;
        break;
    }
    return status_of(e);
}
