/* SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cgi_interpreter *find_interpreter(const struct cgi_settings *settings,
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

/* Asks the kernel, which applies the same check when it executes the script. If the kernel gives no answer,
 * checks the mode bits. */
static bool is_executable(int fd)
{
    struct stat st;
    if (faccessat(fd, "", X_OK, AT_EACCESS | AT_EMPTY_PATH) == 0)
        return true;
    return errno != EACCES && fstat(fd, &st) == 0 && (st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH));
}

/* Returns 0 or an error status: the script may have been removed since the lookup. */
static unsigned check_executable(struct mk_request *request, const struct cgi_script *script)
{
    int fd = mk_request_open(request, script->name);
    if (fd < 0)
        return fd == -ENOMEM || fd == -EMFILE || fd == -ENFILE ? 503 : 404;
    bool may_start = script->interpreter || is_executable(fd);
    close(fd);
    if (!may_start)
        mk_request_log(request, MK_LOG_WARN, "%.*s is not executable and has no interpreter",
                       MK_STR_ARG(script->file));
    return may_start ? 0 : 403;
}

static bool fill_script_paths(struct mk_request *request, struct cgi_script *out)
{
    out->file = mk_request_translate_path(request, out->name);
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
    unsigned status = mk_request_find_script(request, MK_STR(""), &out->name, &out->info);
    if (!status && settings->paths == CGI_PATHS_CHECKED)
        status = mk_request_check_path(request);
    if (status)
        return status;
    if (!fill_script_paths(request, out))
        return 503;
    out->interpreter = find_interpreter(settings, route, out->name);
    return check_executable(request, out);
}
