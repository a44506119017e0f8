/* SPDX-License-Identifier: Apache-2.0 */
/* Files uploaded with a form, or as the request body. */
#include <errno.h>
#include <fcntl.h>
#include <monkey/spool.h>
#include <monkey/text.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <duda.h>

#include "service/denied_path.h"
#include "service/forms.h"
#include "service/request_body.h"

enum { BLOCK = 64 << 10, FILE_MODE = 0640 };
enum { NO_REPLACE = 1 }; /* RENAME_NOREPLACE: musl declares neither the name nor renameat2() */

const struct mk_upload *duda_upload_at(struct duda_ctx *d, size_t i)
{
    if (duda_form_load_implicitly(d))
        return NULL;
    const struct duda_parsed_form *form = duda_form_parsed(d);
    return i < form->fields.n_uploads ? &form->fields.uploads[i] : NULL;
}

const struct mk_upload *duda_upload(struct duda_ctx *d, const char *name)
{
    const struct mk_upload *u;
    for (size_t i = 0; (u = duda_upload_at(d, i)); i++)
        if (mk_str_eq(u->name, mk_str_from_c(name)))
            return u;
    return NULL;
}

ssize_t duda_upload_read(struct duda_ctx *d, const struct mk_upload *u, char *buf, size_t cap, uint64_t at)
{
    const struct duda_parsed_form *form = duda_form_parsed(d);
    if (!form || !form->content)
        return -EINVAL;
    if (at >= u->size)
        return 0;
    uint64_t left = u->size - at;
    return mk_spool_read(form->content, buf, left < cap ? (size_t)left : cap, u->offset + at);
}

int duda_upload_content(struct duda_ctx *d, const struct mk_upload *u, mk_str *content)
{
    *content = MK_STR_NULL;
    char *p = u->size < SIZE_MAX ? duda_alloc(d, (size_t)u->size + 1) : NULL;
    ssize_t n = p ? 1 : -ENOMEM;
    size_t len = 0;
    while (len < u->size && (n = duda_upload_read(d, u, p + len, (size_t)u->size - len, len)) > 0)
        len += (size_t)n;
    if (n <= 0)
        return n ? (int)n : -EIO;
    p[len] = '\0';
    *content = mk_str_of(p, len);
    return 0;
}

/* ---- In a thread ---- */

/* A file that has no name yet or, if the file system requires one, a temporary name. The handler gives the
 * file its final name; if the handler or the thread ends early, no file remains. */
struct upload_save {
    int from, to;
    off_t at;
    uint64_t left;
    size_t folder_len; /* length of the folder in `path`, including its slash */
    char *temporary;   /* NULL: the file has no name */
    char path[];
};

static int copy_file_range_to(int from, off_t at, uint64_t left, int to, char *buf)
{
    while (left) {
        ssize_t n = pread(from, buf, left < BLOCK ? (size_t)left : BLOCK, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n ? -errno : -EIO;
        for (ssize_t done = 0; done < n;) {
            ssize_t m = write(to, buf + done, (size_t)(n - done));
            if (m < 0 && errno != EINTR)
                return -errno;
            done += m > 0 ? m : 0;
        }
        at += n;
        left -= (uint64_t)n;
    }
    return 0;
}

enum { OPEN = O_WRONLY | O_CLOEXEC, TEMPORARY_NAME_MAX = 64 };

static int open_temporary_file(struct upload_save *s)
{
    uint64_t number;
    size_t space = s->folder_len + TEMPORARY_NAME_MAX;
    s->temporary = mk_mem_alloc(space);
    if (!s->temporary)
        return -ENOMEM;
    mk_random(&number, sizeof number);
    snprintf(s->temporary, space, "%.*s.duda-%016llx.part", (int)s->folder_len, s->path,
             (unsigned long long)number);
    int to = open(s->temporary, OPEN | O_CREAT | O_EXCL | O_NOFOLLOW, FILE_MODE);
    if (to >= 0)
        return to;
    int e = -errno;
    mk_mem_free(s->temporary);
    s->temporary = NULL;
    return e;
}

/* Not all file systems support O_TMPFILE, and /proc, needed to name such a file, may be missing. */
static int open_tmpfile(struct upload_save *s)
{
    char saved = s->path[s->folder_len];
    if (access("/proc/self/fd", X_OK) != 0)
        return open_temporary_file(s);
    s->path[s->folder_len] = 0;
    int to = open(s->folder_len ? s->path : ".", OPEN | O_TMPFILE, FILE_MODE), e = errno;
    s->path[s->folder_len] = saved;
    if (to >= 0)
        return to;
    return e == EOPNOTSUPP || e == EISDIR || e == EINVAL ? open_temporary_file(s) : -e;
}

static int save_upload_in_thread(void *ctx)
{
    struct upload_save *s = ctx;
    char *buf = mk_mem_alloc(BLOCK);
    s->to = buf ? open_tmpfile(s) : -ENOMEM;
    int e = s->to < 0 ? s->to : copy_file_range_to(s->from, s->at, s->left, s->to, buf);
    mk_mem_free(buf);
    return e;
}

static void upload_save_free(void *ctx)
{
    struct upload_save *s = ctx;
    if (s->from >= 0)
        close(s->from);
    if (s->to >= 0)
        close(s->to);
    if (s->temporary)
        (void)unlink(s->temporary);
    mk_mem_free(s->temporary);
    mk_mem_free(s);
}

/* ---- In the handler ---- */

/* If the file system has no hard links, renames the file to a free name. */
static int link_or_rename(struct upload_save *s)
{
    if (link(s->temporary, s->path) == 0)
        return 0;
    if (errno == EEXIST || syscall(SYS_renameat2, AT_FDCWD, s->temporary, AT_FDCWD, s->path, NO_REPLACE))
        return -errno;
    mk_mem_free(s->temporary);
    s->temporary = NULL;
    return 0;
}

static int link_final_name(struct upload_save *s)
{
    char fd_path[64];
    if (s->temporary)
        return link_or_rename(s);
    snprintf(fd_path, sizeof fd_path, "/proc/self/fd/%d", s->to);
    return linkat(AT_FDCWD, fd_path, AT_FDCWD, s->path, AT_SYMLINK_FOLLOW) == 0 ? 0 : -errno;
}

/* Prepares to save `size` bytes of the descriptor, from position `offset` on. Returns NULL if out of
 * memory. */
static struct upload_save *upload_save_new(int fd, uint64_t offset, uint64_t size, const char *path)
{
    size_t len = strlen(path) + 1;
    struct upload_save *s = mk_mem_zalloc(1, sizeof *s + len);
    if (!s)
        return NULL;
    memcpy(s->path, path, len);
    const char *slash = strrchr(path, '/');
    s->folder_len = slash ? (size_t)(slash + 1 - path) : 0;
    s->from = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the thread may outlive the request */
    s->to = -1;
    s->at = (off_t)offset;
    s->left = size;
    return s;
}

static int copy_and_link(struct duda_ctx *d, int fd, uint64_t offset, uint64_t size, const char *path)
{
    if (fd < 0)
        return fd;
    struct upload_save *s = upload_save_new(fd, offset, size, path);
    if (!s)
        return -ENOMEM;
    if (s->from < 0) {
        int failed = -errno;
        upload_save_free(s);
        return failed;
    }
    int e = duda_offload_owned(d, NULL, save_upload_in_thread, s, upload_save_free);
    if (e)
        return e;          /* upload_save_free() runs now or when the thread ends */
    e = duda_cancelled(d); /* cancelled while the thread finished */
    e = e ? e : link_final_name(s);
    upload_save_free(s);
    return e;
}

/* The service has chosen the path. If it is wrong, the fault is not that of the client, who must not get 403 or
 * 404. */
static int hide_path_error(int e)
{
    return e == -EACCES || e == -EPERM ? -EROFS : e == -ENOENT ? -ENOTDIR : e;
}

static int save_as(struct duda_ctx *d, int fd, uint64_t offset, uint64_t size, const char *path)
{
    int e = path ? copy_and_link(d, fd, offset, size, path) : -ENOMEM;
    if (!path || !e || e == -EEXIST || duda_cancelled(d))
        return e;
    return duda_reason(d, hide_path_error(e), "the content cannot be saved as %s: %s%s%s", path, strerror(-e),
                       path[0] == '/' ? ""
                                      : " (a relative path starts at the working directory of the server)",
                       duda_denied_path_hint(e, true));
}

int duda_upload_save(struct duda_ctx *d, const struct mk_upload *u, const char *path)
{
    const struct duda_parsed_form *form = duda_form_parsed(d);
    int fd = form && form->content ? mk_spool_fd(form->content) : -EINVAL;
    return save_as(d, fd, u->offset, u->size, path);
}

int duda_body_save(struct duda_ctx *d, const char *path)
{
    struct mk_spool *body;
    int e = d->request ? duda_request_body_check_coding(d) : -EALREADY;
    if (!e)
        e = duda_form_spool_body(d, 0, &body);
    if (e)
        return e;
    e = save_as(d, mk_spool_fd(body), 0, mk_spool_length(body), path);
    mk_spool_free(body);
    return e;
}

int duda_upload_save_unique(struct duda_ctx *d, const struct mk_upload *u, const char *folder, mk_str *name)
{
    unsigned char random[16];
    char hex[2 * sizeof random];
    struct mk_buf text = mk_buf_fixed(hex, sizeof hex);
    mk_random(random, sizeof random);
    mk_hex_encode(&text, mk_str_of((const char *)random, sizeof random));
    mk_str path = duda_sprintf(d, "%s/%.*s", folder, MK_STR_ARG(mk_buf_str(&text)));
    int e = path.p ? duda_upload_save(d, u, path.p) : -ENOMEM;
    *name = e ? MK_STR_NULL : mk_str_skip(path, path.len - sizeof hex);
    return e;
}
