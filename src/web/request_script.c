/* SPDX-License-Identifier: Apache-2.0 */
/* Which script a path leads to, for handlers that have it run. */
#include <errno.h>
#include <monkey/host.h>
#include <monkey/request.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* 0: a regular file; -EISDIR: a folder; -EACCES: anything else; or why it cannot be opened. */
static int check_script_file(const struct mk_request *r, mk_str path)
{
    int kind = mk_request_stat(r, path, NULL);
    if (kind < 0)
        return kind;
    return kind == MK_FILE_REGULAR ? 0 : kind == MK_FILE_FOLDER ? -EISDIR : -EACCES;
}

/* Is there a part that begins with a dot? */
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

/* Most paths end with the name of the script. Where any name will do, that saves looking at the folders that
 * lead to it; a path that goes through a file fails. */
static bool find_whole_path_script(const struct mk_request *r, mk_str path, mk_str *name, int *e)
{
    *name = mk_str_first(path, path.len - (path.len > 1 && mk_str_ends(path, MK_STR("/"))));
    *e = check_script_file(r, *name);
    return *e != -ENOTDIR && *e != -ENAMETOOLONG;
}

/* Where names of files end: a part with an encoded slash leads to none. */
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

/* The first part that is no folder. *name: the last one that was looked for; absent: none. */
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

/* One a second in each process: clients must not fill the log. */
static void log_script_forbidden(const struct mk_request *r, mk_str name, int e)
{
    static _Atomic int64_t last;
    int64_t now = (int64_t)time(NULL);
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
