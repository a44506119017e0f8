/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the script in a path, for handlers that run scripts. */
#include <errno.h>
#include <monkey/host.h>
#include <monkey/request.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"

/* Returns 0 for a regular file, -EISDIR for a folder, -EACCES for another file type, or the error of opening
 * the file. */
static int check_script_file(const struct mk_request *r, mk_str path)
{
    int kind = mk_request_stat(r, path, NULL);
    if (kind < 0)
        return kind;
    return kind == MK_FILE_REGULAR ? 0 : kind == MK_FILE_FOLDER ? -EISDIR : -EACCES;
}

/* Does a segment begin with a dot? */
static bool has_dot_segment(mk_str path)
{
    for (size_t i = 0; i + 1 < path.len; i++)
        if (path.p[i] == '/' && path.p[i + 1] == '.')
            return true;
    return false;
}

static unsigned status_of_open_error(int e)
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

static size_t segment_end(mk_str path, size_t from)
{
    size_t slash = mk_str_find(mk_str_skip(path, from), '/');
    return slash == MK_STR_NONE ? path.len : from + slash;
}

/* Looks up the whole path, because most paths end with the name of the script; if scripts may have any name,
 * this avoids a lookup of each folder. False: the path continues after the name of a file, or is too long. */
static bool find_whole_path_script(const struct mk_request *r, mk_str path, mk_str *name, int *e)
{
    *name = mk_str_first(path, path.len - (path.len > 1 && mk_str_ends(path, MK_STR("/"))));
    *e = check_script_file(r, *name);
    return *e != -ENOTDIR && *e != -ENAMETOOLONG;
}

/* Returns where the file names of a path end: a segment with an encoded slash cannot be a file name. */
static size_t file_names_end(const struct mk_request *r, mk_str path)
{
    size_t end = 0;
    if (!mk_request_has_encoded_slash(r))
        return path.len;
    for (size_t i = 0; i + 2 < path.len && memcmp(path.p + i, "%2F", 3); i++)
        if (path.p[i] == '/')
            end = i;
    return end;
}

/* Finds the first segment that ends with the extension and is not a folder. *name: the last path looked up;
 * absent: none. */
static int find_script_segment(const struct mk_request *r, mk_str path, mk_str extension, mk_str *name)
{
    int e = -ENOENT;
    *name = MK_STR_NULL;
    for (size_t end = 0, last = file_names_end(r, path); end < last;) {
        end = segment_end(path, end + 1);
        mk_str candidate = mk_str_first(path, end);
        if (!mk_str_ends(candidate, extension))
            continue;
        *name = candidate;
        e = check_script_file(r, candidate);
        if (e != -EISDIR)
            break;
    }
    return e;
}

/* Logs at most once a second per process, so that clients cannot flood the log. */
static void log_script_forbidden(const struct mk_request *r, mk_str name, int e)
{
    static _Atomic int64_t last;
    int64_t now = mk_clock_unix();
    if (atomic_exchange_explicit(&last, now, memory_order_relaxed) == now)
        return;
    mk_request_log((struct mk_request *)(uintptr_t)r, MK_LOG_WARN, "403: the script %.*s beneath %.*s: %s",
                   MK_STR_ARG(name), MK_STR_ARG(mk_vhost_root(mk_request_vhost(r))), strerror(-e));
}

unsigned mk_request_find_script(const struct mk_request *r, mk_str extension, mk_str *name, mk_str *info)
{
    mk_str path = mk_request_path(r);
    int e;
    *name = *info = path;
    if (!mk_str_starts(path, MK_STR("/")))
        return 404;
    if (extension.len || mk_request_has_encoded_slash(r) || !find_whole_path_script(r, path, name, &e))
        e = find_script_segment(r, path, extension, name);
    *info = mk_str_skip(path, name->len);
    if (e == 0 && has_dot_segment(*name) && !mk_request_shows_dot_files(r))
        return 403;
    unsigned status = status_of_open_error(e);
    if (status == 403)
        log_script_forbidden(r, *name, e);
    return status;
}
