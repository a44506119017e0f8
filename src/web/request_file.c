/* SPDX-License-Identifier: Apache-2.0 */
/* Maps a path to a file, for handlers other than static. */
#include "http/negotiate.h"
#include "web/request_type.h"
#include "web/web.h"

_Static_assert((int)MK_OPEN_FILE == MK_FILE_REGULAR && (int)MK_OPEN_FOLDER == MK_FILE_FOLDER &&
                   (int)MK_OPEN_OTHER == MK_FILE_OTHER,
               "one numbering");

/* Does a segment begin with a dot? In most paths, none does. */
static bool has_dot_part(mk_str path)
{
    for (const char *at = path.p, *end = path.p + path.len; at < end; at++) {
        at = memchr(at, '.', (size_t)(end - at));
        if (!at)
            return false;
        if (at > path.p && at[-1] == '/')
            return true;
    }
    return false;
}

/* Is it a path in the form that mk_request_path() returns? The segments of any other path might lead out of
 * the root. */
static bool is_safe_path(mk_str path)
{
    if (path.len == 0 || path.p[0] != '/' || mk_str_find(path, '\0') != MK_STR_NONE)
        return false;
    if (!has_dot_part(path))
        return true;
    while (path.p) {
        mk_str part = mk_str_cut(&path, '/');
        if (mk_str_eq(part, MK_STR(".")) || mk_str_eq(part, MK_STR("..")))
            return false;
    }
    return true;
}

/* Removes leading slashes: "//etc" must not become "/etc". */
static mk_str strip_leading_slashes(mk_str path)
{
    while (path.len && path.p[0] == '/')
        path = mk_str_skip(path, 1);
    return path;
}

/* Finds the root folder for *path, and removes the prefix of *path that stands for that folder. Returns 0 or
 * an error. */
static mk_err find_path_root(const struct mk_request *r, mk_str *path, const struct mk_root **root)
{
    if (!is_safe_path(*path))
        return -EINVAL;
    if (!r->site)
        return -ENOENT;
    *root = mk_vhost_find_root(r->site, path);
    *path = strip_leading_slashes(*path);
    return (*root)->fd < 0 ? -ENOENT : 0;
}

int mk_request_open(const struct mk_request *r, mk_str path)
{
    const struct mk_root *root;
    int fd;
    mk_err e = find_path_root(r, &path, &root);
    if (!e)
        e = mk_file_cache_open_uncached(&r->web->files, root, path, &fd);
    return e ? e : fd;
}

int mk_request_stat(const struct mk_request *r, mk_str path, struct mk_file_id *id)
{
    const struct mk_root *root;
    struct mk_open_file *f;
    bool wants_folder = mk_str_ends(path, MK_STR("/"));
    mk_err e = find_path_root(r, &path, &root);
    while (path.len && path.p[path.len - 1] == '/')
        path.len--;
    if (!e)
        e = mk_file_cache_acquire(&r->web->files, root, path, *r->web->now_ms, &f);
    if (e)
        return e;
    int kind = (int)f->kind;
    if (id)
        *id = mk_open_file_id(f);
    mk_open_file_release(f);
    return wants_folder && kind != MK_FILE_FOLDER ? -ENOTDIR : kind;
}

mk_str mk_request_translate_path(const struct mk_request *r, mk_str path)
{
    if (!r->site || !is_safe_path(path))
        return (mk_str){NULL, 0};
    const struct mk_root *root = mk_vhost_find_root(r->site, &path);
    mk_str folder = mk_str_from_c(root->path);
    if (folder.len == 0)
        return (mk_str){NULL, 0};
    if (folder.p[folder.len - 1] == '/')
        folder.len--;
    path = strip_leading_slashes(path);
    char *name = mk_arena_alloc(r->arena, folder.len + 1 + path.len + 1);
    if (!name)
        return MK_STR_NULL;
    memcpy(name, folder.p, folder.len);
    name[folder.len] = '/';
    memcpy(name + folder.len + 1, path.p, path.len);
    name[folder.len + 1 + path.len] = '\0';
    return mk_str_of(name, folder.len + 1 + path.len);
}

bool mk_request_shows_dot_files(const struct mk_request *r)
{
    return r->site && r->site->dot_files;
}

mk_str mk_request_media_type(const struct mk_request *r, mk_str file_name)
{
    return r->site ? mk_mime_find(r->site->mime, file_name) : MK_STR("application/octet-stream");
}

unsigned mk_request_accepts_coding(const struct mk_request *r, mk_str coding)
{
    return mk_negotiate_coding_q(mk_request_received_headers(r), MK_HEADER_ACCEPT_ENCODING, coding);
}

unsigned mk_request_accepts_type(const struct mk_request *r, mk_str type)
{
    return mk_negotiate_type_q(&r->fields, type);
}
