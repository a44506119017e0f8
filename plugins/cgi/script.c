/* SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A descriptor of the regular file at the path; -EISDIR for a folder, -EACCES for anything else, or another
 * error. */
static int open_file(const struct mk_request *request, mk_str path)
{
    struct stat st;
    int fd = mk_request_open(request, path);
    if (fd < 0)
        return fd;
    int e = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : S_ISDIR(st.st_mode) ? -EISDIR : -EACCES;
    if (!e)
        return fd;
    close(fd);
    return e;
}

static size_t part_end(mk_str path, size_t from)
{
    size_t slash = mk_str_find(mk_str_skip(path, from), '/');
    return slash == MK_STR_NONE ? path.len : from + slash;
}

/* The first part that is a file. Most paths end with the name of the script: try that first, and walk along
 * the path only if it goes through a file. */
static int open_first_file(const struct mk_request *request, mk_str path, size_t *len)
{
    *len = path.len > 1 && path.p[path.len - 1] == '/' ? path.len - 1 : path.len;
    int fd = open_file(request, mk_str_first(path, *len));
    if (fd != -ENOTDIR && fd != -ENAMETOOLONG)
        return fd;
    for (*len = part_end(path, 1);; *len = part_end(path, *len + 1)) {
        fd = open_file(request, mk_str_first(path, *len));
        if (fd != -EISDIR || *len >= path.len)
            return fd;
    }
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

static const struct cgi_interpreter *interpreter_for(const struct cgi_settings *settings,
                                                     const struct cgi_route *route, mk_str name)
{
    if (route && route->interpreter)
        return route->interpreter;
    for (const struct cgi_item *i = settings->interpreters.first; i; i = i->next) {
        const struct cgi_interpreter *in = (const struct cgi_interpreter *)i;
        if (mk_str_ends(name, in->suffix))
            return in;
    }
    return NULL;
}

/* The kernel decides when the script starts; if it cannot be asked here, the mode has to do. */
static bool may_execute(int fd)
{
    struct stat st;
    if (faccessat(fd, "", X_OK, AT_EACCESS | AT_EMPTY_PATH) == 0)
        return true;
    return errno != EACCES && fstat(fd, &st) == 0 && (st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH));
}

static bool name_parts(struct mk_request *request, mk_str path, size_t len, struct cgi_script *out)
{
    out->name = mk_str_first(path, len);
    out->info = mk_str_skip(path, len);
    out->file = mk_request_file_name(request, out->name);
    size_t slash = mk_str_find_last(out->file, '/');
    char *folder = mk_request_alloc(request, out->file.len + 1);
    if (!out->file.p || slash == MK_STR_NONE || !folder)
        return false;
    size_t n = slash > 0 ? slash : 1;
    memcpy(folder, out->file.p, n);
    folder[n] = '\0';
    out->folder = mk_str_of(folder, n);
    mk_str last = mk_str_skip(out->name, mk_str_find_last(out->name, '/') + 1);
    out->speaks_http = mk_str_starts(last, MK_STR("nph-"));
    return true;
}

unsigned cgi_script_find(struct mk_request *request, const struct cgi_settings *settings,
                         const struct cgi_route *route, struct cgi_script *out)
{
    mk_str path = mk_request_path(request);
    size_t len;
    if (mk_request_has_encoded_slash(request) || !mk_str_starts(path, MK_STR("/")))
        return 404;
    int fd = open_first_file(request, path, &len);
    if (fd < 0)
        return status_of(fd);
    bool executable = may_execute(fd);
    close(fd);
    if (is_hidden(mk_str_first(path, len)) && !mk_request_shows_dot_files(request))
        return 403;
    if (!name_parts(request, path, len, out))
        return 503;
    out->interpreter = interpreter_for(settings, route, out->name);
    if (out->interpreter || executable)
        return 0;
    mk_request_log(request, MK_LOG_WARN, "%.*s is not executable and has no interpreter",
                   MK_STR_ARG(out->file));
    return 403;
}
