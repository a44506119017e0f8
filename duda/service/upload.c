/* SPDX-License-Identifier: Apache-2.0 */
/* Files that came with a form. */
#include <errno.h>
#include <fcntl.h>
#include <monkey/text.h>
#include <stdio.h>
#include <unistd.h>

#include <duda.h>

#include "service/forms.h"

enum { BLOCK = 64 << 10, FILE_MODE = 0640 };

const struct duda_upload *duda_upload_at(struct duda *d, size_t i)
{
    if (duda_form_load(d, NULL, NULL))
        return NULL;
    const struct duda_kept_form *form = duda_forms_of(d);
    return i < form->n_files ? &form->files[i] : NULL;
}

const struct duda_upload *duda_upload(struct duda *d, const char *name)
{
    const struct duda_upload *u;
    for (size_t i = 0; (u = duda_upload_at(d, i)); i++)
        if (mk_str_eq(u->name, mk_str_from_c(name)))
            return u;
    return NULL;
}

ssize_t duda_upload_read(struct duda *d, const struct duda_upload *u, char *room, size_t cap, uint64_t at)
{
    const struct duda_kept_form *form = duda_forms_of(d);
    if (!form || !form->content)
        return -EINVAL;
    if (at >= u->size)
        return 0;
    uint64_t left = u->size - at;
    return mk_spool_read(form->content, room, left < cap ? (size_t)left : cap, u->at + at);
}

/* ---- In a thread ---- */

/* A file that has no name yet, or where the file system wants one, a name that says so. It gets its own in the
 * handler: if that has ended, or the thread, nothing is left. */
struct saving {
    int from, to, result;
    off_t at;
    uint64_t left;
    size_t folder_len; /* of path, with its slash */
    char *temporary;   /* NULL: it has no name */
    char path[];
};

static int copy(int from, off_t at, uint64_t left, int to, char *room)
{
    while (left) {
        ssize_t n = pread(from, room, left < BLOCK ? (size_t)left : BLOCK, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n ? -errno : -EIO;
        for (ssize_t done = 0; done < n;) {
            ssize_t m = write(to, room + done, (size_t)(n - done));
            if (m < 0 && errno != EINTR)
                return -errno;
            done += m > 0 ? m : 0;
        }
        at += n;
        left -= (uint64_t)n;
    }
    return 0;
}

enum { OPEN = O_WRONLY | O_CLOEXEC, TEMPORARY_ROOM = 64 };

static int open_named(struct saving *s)
{
    uint64_t number;
    size_t room = s->folder_len + TEMPORARY_ROOM;
    s->temporary = mk_mem_alloc(room);
    if (!s->temporary)
        return -ENOMEM;
    mk_random(&number, sizeof number);
    snprintf(s->temporary, room, "%.*s.duda-%016llx.part", (int)s->folder_len, s->path,
             (unsigned long long)number);
    int to = open(s->temporary, OPEN | O_CREAT | O_EXCL | O_NOFOLLOW, FILE_MODE);
    if (to >= 0)
        return to;
    int e = -errno;
    mk_mem_free(s->temporary);
    s->temporary = NULL;
    return e;
}

/* Not all file systems have files without a name, and /proc may be missing, by which such a file gets one. */
static int open_unnamed(struct saving *s)
{
    char saved = s->path[s->folder_len];
    if (access("/proc/self/fd", X_OK) != 0)
        return open_named(s);
    s->path[s->folder_len] = 0;
    int to = open(s->folder_len ? s->path : ".", OPEN | O_TMPFILE, FILE_MODE), e = errno;
    s->path[s->folder_len] = saved;
    if (to >= 0)
        return to;
    return e == EOPNOTSUPP || e == EISDIR || e == EINVAL ? open_named(s) : -e;
}

static void save(void *ctx)
{
    struct saving *s = ctx;
    char *room = mk_mem_alloc(BLOCK);
    s->to = room ? open_unnamed(s) : -ENOMEM;
    s->result = s->to < 0 ? s->to : copy(s->from, s->at, s->left, s->to, room);
    mk_mem_free(room);
}

static void drop(void *ctx)
{
    struct saving *s = ctx;
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

/* It may not have links: then it is moved to a name that was free. */
static int move(struct saving *s)
{
    if (link(s->temporary, s->path) == 0)
        return 0;
    if (errno == EEXIST || renameat2(AT_FDCWD, s->temporary, AT_FDCWD, s->path, RENAME_NOREPLACE))
        return -errno;
    mk_mem_free(s->temporary);
    s->temporary = NULL;
    return 0;
}

static int name_file(struct saving *s)
{
    char place[64];
    if (s->temporary)
        return move(s);
    snprintf(place, sizeof place, "/proc/self/fd/%d", s->to);
    return linkat(AT_FDCWD, place, AT_FDCWD, s->path, AT_SYMLINK_FOLLOW) == 0 ? 0 : -errno;
}

static struct saving *prepare(int fd, const struct duda_upload *u, const char *path)
{
    size_t len = strlen(path) + 1;
    struct saving *s = mk_mem_zalloc(1, sizeof *s + len);
    if (!s)
        return NULL;
    memcpy(s->path, path, len);
    const char *slash = strrchr(path, '/');
    s->folder_len = slash ? (size_t)(slash + 1 - path) : 0;
    s->from = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the thread may live longer than the request */
    s->to = -1;
    s->at = (off_t)u->at;
    s->left = u->size;
    return s;
}

int duda_upload_save(struct duda *d, const struct duda_upload *u, const char *path)
{
    const struct duda_kept_form *form = duda_forms_of(d);
    int fd = form && form->content ? mk_spool_fd(form->content) : -EINVAL;
    if (fd < 0)
        return fd;
    struct saving *s = prepare(fd, u, path);
    if (!s)
        return -ENOMEM;
    if (s->from < 0) {
        int failed = -errno;
        drop(s);
        return failed;
    }
    int e = duda_aside_given(d, NULL, save, s, drop);
    if (e)
        return e;      /* drop() is called, now or when the thread has ended */
    e = duda_ended(d); /* while the thread came to its end */
    e = e ? e : s->result ? s->result : name_file(s);
    drop(s);
    return e;
}
