/* SPDX-License-Identifier: Apache-2.0 */
/* Files that came with a form. */
#include <errno.h>
#include <fcntl.h>
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

struct saving {
    int from, result;
    off_t at;
    uint64_t left;
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

static void save(void *ctx)
{
    struct saving *s = ctx;
    char *room = mk_mem_alloc(BLOCK);
    int to = !room ? -1 : open(s->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    if (to < 0) {
        s->result = room ? -errno : -ENOMEM;
        mk_mem_free(room);
        return;
    }
    s->result = copy(s->from, s->at, s->left, to, room);
    mk_mem_free(room);
    if (close(to) && !s->result)
        s->result = -errno;
    if (s->result)
        (void)unlink(s->path);
}

static void drop(void *ctx)
{
    struct saving *s = ctx;
    close(s->from);
    mk_mem_free(s);
}

/* ---- In the handler ---- */

int duda_upload_save(struct duda *d, const struct duda_upload *u, const char *path)
{
    const struct duda_kept_form *form = duda_forms_of(d);
    size_t len = strlen(path) + 1;
    int fd = form && form->content ? mk_spool_fd(form->content) : -EINVAL;
    if (fd < 0)
        return fd;
    struct saving *s = mk_mem_alloc(sizeof *s + len);
    if (!s)
        return -ENOMEM;
    s->from = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the thread may live longer than the request */
    s->result = s->from < 0 ? -errno : 0;
    s->at = (off_t)u->at;
    s->left = u->size;
    memcpy(s->path, path, len);
    if (s->result) {
        int e = s->result;
        mk_mem_free(s);
        return e;
    }
    int e = duda_aside_given(d, NULL, save, s, drop);
    if (e)
        return e; /* drop() is called, now or when the thread has ended */
    e = s->result;
    drop(s);
    return e;
}
