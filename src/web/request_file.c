/* SPDX-License-Identifier: Apache-2.0 */
/* What a path leads to, for handlers other than the one for static files. */
#include "http/negotiate.h"
#include "web/request_type.h"
#include "web/web.h"

/* A path as of mk_request_path(); others must not leave the root by the parts that they are made of. */
static bool is_clean(mk_str path)
{
    if (path.len == 0 || path.p[0] != '/' || mk_str_find(path, '\0') != MK_STR_NONE)
        return false;
    while (path.p) {
        mk_str part = mk_str_cut(&path, '/');
        if (mk_str_eq(part, MK_STR(".")) || mk_str_eq(part, MK_STR("..")))
            return false;
    }
    return true;
}

/* Removes leading slashes: "//etc" must not become "/etc". */
static mk_str relative(mk_str path)
{
    while (path.len && path.p[0] == '/')
        path = mk_str_skip(path, 1);
    return path;
}

int mk_request_open(const struct mk_request *r, mk_str path)
{
    int fd;
    if (!is_clean(path))
        return -EINVAL;
    if (!r->site)
        return -ENOENT;
    const struct mk_root *root = mk_host_choose_root(r->site, &path);
    if (root->fd < 0)
        return -ENOENT;
    mk_err e = mk_filecache_open(&r->web->files, root, relative(path), &fd);
    return e ? e : fd;
}

mk_str mk_request_file_name(const struct mk_request *r, mk_str path)
{
    if (!r->site || !is_clean(path))
        return (mk_str){NULL, 0};
    const struct mk_root *root = mk_host_choose_root(r->site, &path);
    mk_str folder = mk_str_from_c(root->path);
    if (folder.len == 0)
        return (mk_str){NULL, 0};
    if (folder.p[folder.len - 1] == '/')
        folder.len--;
    path = relative(path);
    return mk_arena_printf(r->arena, "%.*s/%.*s", MK_STR_ARG(folder), MK_STR_ARG(path));
}

bool mk_request_shows_dot_files(const struct mk_request *r)
{
    return r->site && r->site->dot_files;
}

mk_str mk_request_type_of(const struct mk_request *r, mk_str file_name)
{
    return r->site ? mk_mime_find(r->site->mime, file_name) : MK_STR("application/octet-stream");
}

unsigned mk_request_accepts_coding(const struct mk_request *r, mk_str coding)
{
    return mk_negotiate_q(&r->fields, MK_FIELD_ACCEPT_ENCODING, coding);
}

unsigned mk_request_accepts_type(const struct mk_request *r, mk_str type)
{
    return mk_negotiate_type_q(&r->fields, type);
}
