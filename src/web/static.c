/* SPDX-License-Identifier: Apache-2.0 */
#include "web/static.h"

#include <limits.h>

#include "web/byteranges.h"
#include "web/redirect.h"
#include "web/representation.h"
#include "web/request_target.h"
#include "web/web.h"

/* Does a segment begin with a dot? A top-level `.well-known` is public (RFC 8615). */
static bool has_hidden_segment(mk_str path)
{
    if (mk_str_starts(path, MK_STR("/.well-known/")) || mk_str_eq(path, MK_STR("/.well-known")))
        path = mk_str_skip(path, sizeof "/.well-known" - 1);
    for (size_t i = 0; i + 1 < path.len; i++)
        if (path.p[i] == '/' && path.p[i + 1] == '.')
            return true;
    return false;
}

static mk_str strip_outer_slashes(mk_str path)
{
    path = mk_str_skip(path, 1);
    return mk_str_first(path, path.len > 0 && path.p[path.len - 1] == '/' ? path.len - 1 : path.len);
}

static enum mk_static_find result_of_open_error(mk_err e)
{
    switch (e) {
    case -EACCES:
    case -EPERM:
    case -ELOOP:
    case -EXDEV:
        return MK_STATIC_FORBIDDEN;
    case -ENOMEM:
    case -EMFILE:
    case -ENFILE:
    case -EAGAIN:
        return MK_STATIC_BUSY;
    case -EIO:
    case -EBADMSG:
    case -ESTALE:
        return MK_STATIC_BROKEN;
    default:
        return MK_STATIC_MISSING;
    }
}

static void open_file_at(const struct mk_request *request, mk_str path, struct mk_static_result *found)
{
    found->error =
        mk_file_cache_acquire(&request->web->files, found->root, path, request->now_ms, &found->file);
    found->what = found->error ? result_of_open_error(found->error) : MK_STATIC_FILE;
    if (!found->error && found->file->kind == MK_OPEN_OTHER) {
        mk_open_file_release(found->file);
        found->what = MK_STATIC_FORBIDDEN;
    }
}

/* A file found through its folder may be a script that an earlier route assigns to another handler: its
 * source must not be sent just because the folder was requested. */
static void check_served_by_static(const struct mk_request *request, mk_str folder, mk_str name,
                                   struct mk_static_result *found)
{
    mk_str path = mk_arena_printf(request->arena, "%.*s%.*s", MK_STR_ARG(folder), MK_STR_ARG(name));
    const struct mk_vhost *host = request->site;
    const struct mk_route *ours = request->route ? request->route : host->routes;
    enum mk_regex_result result;
    const struct mk_route *route = &host->routes[path.p ? mk_vhost_next_route(host, 0, path, &result) : 0];
    if (path.p && (route >= ours || route->handler == &mk_static))
        return;
    mk_open_file_release(found->file);
    found->what = MK_STATIC_ELSEWHERE;
    found->elsewhere = path;
}

static void open_index_file(const struct mk_request *request, mk_str folder, struct mk_static_result *found)
{
    char buf[PATH_MAX];
    for (size_t i = 0; i < request->site->n_index; i++) {
        struct mk_buf path = mk_buf_fixed(buf, sizeof buf);
        mk_buf_add(&path, folder);
        mk_buf_add(&path, folder.len ? MK_STR("/") : MK_STR(""));
        mk_buf_add(&path, request->site->index[i]);
        if (path.failed)
            continue;
        open_file_at(request, mk_buf_str(&path), found);
        if (found->what == MK_STATIC_FILE && found->file->kind == MK_OPEN_FILE) {
            check_served_by_static(request, request->target->path, request->site->index[i], found);
            return;
        }
        if (found->what == MK_STATIC_FILE)
            mk_open_file_release(found->file);
        else if (found->what != MK_STATIC_MISSING)
            return;
    }
    found->what = MK_STATIC_FOLDER_WITHOUT_INDEX;
}

static void find_in_root(const struct mk_request *request, struct mk_static_result *found)
{
    mk_str path = request->target->path;
    found->root = mk_vhost_find_root(request->site, &path);
    bool has_slash = path.len == 0 || path.p[path.len - 1] == '/';
    if (path.len == 0) { /* /~name, or the path of an Alias */
        found->what = MK_STATIC_FOLDER_WITHOUT_SLASH;
        return;
    }
    mk_str name = strip_outer_slashes(path);
    open_file_at(request, name, found);
    if (found->what != MK_STATIC_FILE)
        return;
    bool is_folder = found->file->kind == MK_OPEN_FOLDER;
    if (!is_folder && !has_slash)
        return;
    mk_open_file_release(found->file);
    if (!is_folder)
        found->what = MK_STATIC_MISSING;
    else if (!has_slash)
        found->what = MK_STATIC_FOLDER_WITHOUT_SLASH;
    else
        open_index_file(request, name, found);
}

/* Is it a navigation request, which gets the page of a single-page application, rather than a request for a
 * missing script or image? */
static bool is_navigation_request(const struct mk_request *request)
{
    mk_str last = mk_str_skip(request->target->path, mk_str_find_last(request->target->path, '/') + 1);
    mk_str accept = mk_headers_get(&request->fields, MK_HEADER_ACCEPT);
    return mk_str_find(last, '.') == MK_STR_NONE || mk_str_starts(accept, MK_STR("text/html"));
}

/* If another handler is responsible for the fallback, such as a front controller, that handler gets every
 * missing path. */
static void open_fallback(const struct mk_request *request, struct mk_static_result *found)
{
    struct mk_static_result fallback = {.root = &request->site->root, .is_fallback = true};
    open_file_at(request, request->site->fallback, &fallback);
    bool is_file = fallback.what == MK_STATIC_FILE && fallback.file->kind == MK_OPEN_FILE;
    if (is_file)
        check_served_by_static(request, MK_STR("/"), request->site->fallback, &fallback);
    if (!is_file && fallback.what == MK_STATIC_FILE) {
        mk_open_file_release(fallback.file);
        fallback.what = MK_STATIC_MISSING;
    }
    if (fallback.what == MK_STATIC_ELSEWHERE || is_navigation_request(request))
        *found = fallback;
    else if (fallback.what == MK_STATIC_FILE)
        mk_open_file_release(fallback.file);
}

void mk_static_find(const struct mk_request *request, struct mk_static_result *found)
{
    *found = (struct mk_static_result){.what = MK_STATIC_MISSING, .root = &request->site->root};
    if (request->site->root.fd < 0)
        return;
    if (!request->site->dot_files && request->target->path_flags & MK_PATH_DOT_PART &&
        has_hidden_segment(request->target->path)) {
        found->what = MK_STATIC_HIDDEN;
        return;
    }
    if (!(request->target->path_flags & MK_PATH_ENCODED_SLASH)) /* a file name cannot contain a slash */
        find_in_root(request, found);
    if (request->site->fallback.p &&
        (found->what == MK_STATIC_MISSING || found->what == MK_STATIC_FOLDER_WITHOUT_INDEX))
        open_fallback(request, found);
}

static enum mk_verdict fail_with_status(struct mk_response *response, unsigned status)
{
    (void)mk_response_set_status(response, status);
    return MK_ERROR;
}

static void release_file(void *file)
{
    mk_open_file_release(file);
}

static enum mk_verdict send_full_file(struct mk_response *response, const struct mk_representation *r)
{
    bool ok = mk_response_add_default_block(response, &r->whole);
    response->status = 200;
    ok = ok && mk_response_body_add_file(&response->content, response->arena, r->file, 0, r->file->size);
    return ok ? MK_DONE : fail_with_status(response, 503);
}

MK_COLD static enum mk_verdict serve_ranges(struct mk_request *request, struct mk_response *response,
                                            const struct mk_representation *r)
{
    struct mk_range ranges[MK_BYTERANGES_MAX];
    int n = mk_byteranges_select(request, &r->validators, r->file->size, r->coded, ranges);
    if (n < 0)
        return mk_byteranges_refuse(response, r->file->size);
    enum mk_verdict v = send_full_file(response, r);
    if (n == 0 || v != MK_DONE)
        return v;
    return mk_byteranges_apply(response, ranges, (unsigned)n) ? MK_DONE : fail_with_status(response, 503);
}

static inline enum mk_verdict serve_representation(struct mk_request *request, struct mk_response *response,
                                                   const struct mk_representation *r)
{
    switch (mk_precondition_check(&request->fields, request->target->method, &r->validators, request->now)) {
    case MK_PRECONDITION_NOT_MODIFIED:
        if (!mk_response_add_default_block(response, &r->about))
            return fail_with_status(response, 503);
        response->status = 304;
        return MK_DONE;
    case MK_PRECONDITION_FAILED:
        return fail_with_status(response, 412);
    case MK_PRECONDITION_PASS:
        break;
    }
    if (MK_UNLIKELY(mk_headers_has(&request->fields, MK_HEADER_RANGE)))
        return serve_ranges(request, response, r);
    return send_full_file(response, r);
}

static inline enum mk_verdict serve_file(struct mk_request *request, struct mk_response *response,
                                         struct mk_open_file *file)
{
    if (!mk_arena_add_cleanup(request->arena, release_file, file)) {
        mk_open_file_release(file);
        return fail_with_status(response, 503);
    }
    const struct mk_representation *r =
        mk_representation_choose(file, request->site, &request->fields, request->now_ms);
    if (!r)
        return fail_with_status(response, 503);
    return serve_representation(request, response, r);
}

enum mk_verdict mk_static_serve_representation(struct mk_request *request, struct mk_response *response,
                                               const struct mk_representation *r)
{
    return serve_representation(request, response, r);
}

enum mk_verdict mk_static_serve(struct mk_request *request, struct mk_response *response,
                                struct mk_open_file *file)
{
    return serve_file(request, response, file);
}

enum mk_verdict mk_static_serve_exact_file(struct mk_request *request, struct mk_response *response)
{
    struct mk_static_result found;
    mk_static_find(request, &found);
    if (found.what != MK_STATIC_FILE)
        return MK_NEXT;
    if (!found.is_fallback)
        return mk_static_serve(request, response, found.file);
    mk_open_file_release(found.file);
    return MK_NEXT;
}

/* Did an earlier handler look up the path and find nothing? A file that exists now may be a script being
 * replaced: its source must not be sent. */
static bool was_not_found_before(const struct mk_request *request)
{
    return request->handler_found_nothing && !mk_str_ends(request->target->path, MK_STR("/"));
}

static enum mk_verdict reroute_to_path(struct mk_request *request, struct mk_response *response, mk_str path)
{
    return path.p && mk_request_target_set_path(request, path) ? MK_REWRITTEN
                                                               : fail_with_status(response, 503);
}

enum mk_verdict mk_static_reroute_to_other_handler(struct mk_request *request, struct mk_response *response)
{
    struct mk_static_result found;
    mk_static_find(request, &found);
    if (found.what == MK_STATIC_FILE)
        mk_open_file_release(found.file);
    return found.what == MK_STATIC_ELSEWHERE ? reroute_to_path(request, response, found.elsewhere) : MK_NEXT;
}

static const char *forbidden_reason(mk_err e)
{
    if (e == -ELOOP || e == -EXDEV)
        return "a symbolic link that `FollowSymlinks` does not allow";
    return e ? mk_err_text(e) : "neither a file nor a folder";
}

/* Explains a 403 in the error log. `e`: error of opening the path; 0: it is neither a file nor a folder. Logs
 * one warning per second and worker, so that clients cannot flood the log, and all other messages at debug
 * level. */
MK_COLD static void log_file_forbidden(const struct mk_request *r, mk_str path, const char *root, mk_err e)
{
    struct mk_web_ctx *web = r->web;
    bool is_right = e == -EACCES || e == -EPERM;
    const char *remedy = is_right ? "; let the workers' user read the file and search its folders" : "";
    if (web->forbidden_logged_at == r->now)
        mk_log_debug(web->log, "403: %.*s beneath %s: %s%s", MK_STR_ARG(path), root, forbidden_reason(e),
                     remedy);
    else
        mk_log_warn(web->log, "403: %.*s beneath %s: %s%s", MK_STR_ARG(path), root, forbidden_reason(e),
                    remedy);
    web->forbidden_logged_at = r->now;
}

static enum mk_verdict handle_static(struct mk_request *request, struct mk_response *response, void *data)
{
    struct mk_static_result found;
    (void)data;
    mk_static_find(request, &found);
    switch (found.what) {
    case MK_STATIC_FILE:
        if (found.is_fallback || !was_not_found_before(request))
            return serve_file(request, response, found.file);
        mk_open_file_release(found.file);
        break;
    case MK_STATIC_ELSEWHERE:
        return reroute_to_path(request, response, found.elsewhere);
    case MK_STATIC_FOLDER_WITHOUT_SLASH:
        return mk_redirect_to_folder(request, response, 301) ? MK_DONE : fail_with_status(response, 503);
    case MK_STATIC_FOLDER_WITHOUT_INDEX: /* 403, unless a later handler lists the folder */
        (void)mk_response_set_status(response, 403);
        return MK_NEXT;
    case MK_STATIC_FORBIDDEN:
        log_file_forbidden(request, request->target->path, found.root->path, found.error);
        return fail_with_status(response, 403);
    case MK_STATIC_HIDDEN:
        return fail_with_status(response, 403);
    case MK_STATIC_BUSY:
        return fail_with_status(response, 503);
    case MK_STATIC_BROKEN:
        mk_log_error(request->web->log, "%.*s beneath %s: %s", MK_STR_ARG(request->target->path),
                     found.root->path, mk_err_text(found.error));
        return fail_with_status(response, 500);
    case MK_STATIC_MISSING:
        break;
    }
    return MK_NEXT;
}

const struct mk_handler mk_static = {
    .name = "static",
    .methods = MK_METHOD_BIT(MK_METHOD_GET),
    .handle = handle_static,
    .traits = MK_HANDLER_FILES,
};
