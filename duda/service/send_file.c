/* SPDX-License-Identifier: Apache-2.0 */
/* Responses whose body is a file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <monkey/mem.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <duda.h>

#include "service/denied_path.h"
#include "service/response.h"

int duda_send_fd(struct duda_ctx *d, int fd, uint64_t offset, uint64_t length)
{
    bool is_final = duda_head_is_final(d);
    d->conditional |= MK_CONDITIONAL_RANGES;
    if (!is_final && d->output != DUDA_OUTPUT_BUFFERED)
        return mk_response_set_body_file(d->response, fd, offset, length);
    close(fd);
    return is_final ? -EALREADY : -EINVAL;
}

static int send_regular_file(struct duda_ctx *d, int fd, const struct stat *st, mk_str path)
{
    char tag[64];
    mk_str type = mk_request_media_type(d->request, path);
    snprintf(tag, sizeof tag, "%llx-%llx-%llx", (unsigned long long)st->st_ino,
             (unsigned long long)st->st_size,
             (unsigned long long)st->st_mtim.tv_sec * 1000000000u + (unsigned long long)st->st_mtim.tv_nsec);
    int e = duda_check_preconditions(d, mk_str_from_c(tag), st->st_mtim.tv_sec);
    if (!e && type.p && !mk_response_header(d->response, MK_STR("Content-Type")).p)
        e = duda_header_set(d, "Content-Type", type);
    if (!e)
        return duda_send_fd(d, fd, 0, (uint64_t)st->st_size);
    close(fd);
    return e;
}

int duda_send_file(struct duda_ctx *d, mk_str path)
{
    struct stat st;
    int fd = d->request ? mk_request_open(d->request, path) : -EALREADY;
    if (fd == -ENOENT || fd == -ENOTDIR || fd == -EINVAL || fd == -EACCES)
        return 404;
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return send_regular_file(d, fd, &st, path);
    close(fd);
    return 404;
}

/* ---- Files in a folder of the service ---- */

/* The folder is a directory descriptor, and no symbolic link is followed below it, so a name cannot lead out of
 * the folder. */
struct file_open {
    int fd; /* -1: not open */
    int error;
    bool lacks_folder; /* `error` is that of the folder */
    struct stat st;
    const char *name; /* in `folder`, after its NUL */
    char folder[];
};

static void file_open_free(void *job)
{
    struct file_open *f = job;
    if (f->fd >= 0)
        close(f->fd);
    mk_mem_free(f);
}

/* Returns NULL if out of memory. */
static struct file_open *file_open_new(const char *folder, mk_str name)
{
    size_t len = strlen(folder) + 1;
    struct file_open *f = mk_mem_zalloc(1, sizeof *f + len + name.len + 1);
    if (!f)
        return NULL;
    f->fd = -1;
    f->name = f->folder + len;
    memcpy(f->folder, folder, len);
    memcpy(f->folder + len, name.p, name.len);
    return f;
}

/* Replaces the descriptor of the folder by that of an entry. */
static int open_entry(int folder, mk_str entry, int flags)
{
    char text[NAME_MAX + 1];
    if (entry.len > NAME_MAX) {
        close(folder);
        return -ENAMETOOLONG;
    }
    memcpy(text, entry.p, entry.len);
    text[entry.len] = '\0';
    int fd = openat(folder, text, flags | O_NOFOLLOW | O_CLOEXEC), e = errno;
    close(folder);
    return fd < 0 ? -e : fd;
}

/* O_NONBLOCK: opening a FIFO must not wait for its writer. */
static int open_in_thread(void *job)
{
    struct file_open *f = job;
    mk_str rest = mk_str_from_c(f->name);
    int fd = open(f->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    f->lacks_folder = fd < 0;
    f->error = fd < 0 ? -errno : 0;
    while (fd >= 0 && rest.p) {
        mk_str entry = mk_str_cut(&rest, '/');
        fd = open_entry(fd, entry, rest.p ? O_PATH | O_DIRECTORY : O_RDONLY | O_NONBLOCK | O_NOCTTY);
        f->error = fd < 0 ? fd : 0;
    }
    f->fd = fd < 0 ? -1 : fd;
    if (fd >= 0 && fstat(fd, &f->st))
        f->error = -errno;
    else if (fd >= 0 && !S_ISREG(f->st.st_mode))
        f->error = -ENOENT;
    return 0;
}

/* Rejects absolute paths, `..`, empty parts and hidden files, such as unfinished uploads. */
static bool is_visible_name(mk_str name)
{
    if (!name.len || memchr(name.p, 0, name.len))
        return false;
    while (name.p) {
        mk_str entry = mk_str_cut(&name, '/');
        if (!entry.len || entry.p[0] == '.')
            return false;
    }
    return true;
}

static duda_verdict report_open_error(struct duda_ctx *d, const struct file_open *f)
{
    int e = f->error;
    if (!f->lacks_folder &&
        (e == -ENOENT || e == -ENOTDIR || e == -ELOOP || e == -ENAMETOOLONG || e == -ENXIO))
        return 404;
    return duda_reason(d, 500, "%s%s%s cannot be opened: %s%s", f->folder, f->lacks_folder ? "" : "/",
                       f->lacks_folder ? "" : f->name, strerror(-e), duda_denied_path_hint(e, false));
}

duda_verdict duda_send_file_from(struct duda_ctx *d, const char *folder, mk_str name)
{
    if (!d->request)
        return -EALREADY;
    if (!is_visible_name(name))
        return 404;
    struct file_open *f = file_open_new(folder, name);
    int e = f ? duda_offload_owned(d, NULL, open_in_thread, f, file_open_free) : -ENOMEM;
    if (e)
        return e;
    if (f->error) {
        e = report_open_error(d, f);
    } else {
        e = send_regular_file(d, f->fd, &f->st, name);
        f->fd = -1;
    }
    file_open_free(f);
    return e;
}
