/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's directory entry, for which glibc and musl have no common type. */
struct record {
    uint64_t ino;
    int64_t off;
    unsigned short len;
    unsigned char type;
    char name[];
};

static bool should_list_name(const struct folder *f, mk_str name)
{
    if (name.len == 0 || name.p[0] != '.')
        return name.len > 0;
    return f->shows_dot_files && !mk_str_eq(name, MK_STR(".")) && !mk_str_eq(name, MK_STR(".."));
}

/* Returns false for entries that the server could not serve: sockets, pipes and devices. If fstatat() fails,
 * the entry was just removed, or the server could not open it either. */
static bool stat_entry(struct folder *f, const char *name, struct entry *e)
{
    struct stat st;
    if (fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0)
        return false;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
        return false;
    e->kind = S_ISDIR(st.st_mode) ? ENTRY_FOLDER : S_ISREG(st.st_mode) ? ENTRY_FILE : ENTRY_LINK;
    e->size = st.st_size;
    e->mtime = st.st_mtime;
    return true;
}

void dirlisting_folder_read(struct folder *f)
{
    f->n = 0;
    long got = syscall(SYS_getdents64, f->fd, f->records, sizeof f->records);
    if (got < 0 && errno != ENOENT) { /* ENOENT: the folder was removed, so it is empty */
        f->error = -errno;
        return;
    }
    f->ended = got <= 0;
    for (long at = 0; at < got;) {
        const struct record *r = (const struct record *)(const void *)(f->records + at);
        struct entry *e = &f->entries[f->n];
        at += r->len;
        e->name = mk_str_from_c(r->name);
        if (should_list_name(f, e->name) && stat_entry(f, r->name, e) && ++f->n == FOLDER_PIECE)
            return;
    }
}

void dirlisting_folder_rewind(struct folder *f)
{
    if (lseek(f->fd, 0, SEEK_SET) < 0)
        f->error = -errno;
    f->ended = false;
    f->n = 0;
}
