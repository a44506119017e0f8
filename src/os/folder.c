/* SPDX-License-Identifier: Apache-2.0 */
#include "os/folder.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's struct linux_dirent64, whose name differs between glibc and musl. */
struct dir_entry {
    uint64_t ino;
    int64_t off;
    unsigned short len;
    unsigned char type;
    char name[];
};

enum { PIECE = 8 * 1024 };

static bool is_dot_or_dot_dot(mk_str name)
{
    return mk_str_eq(name, MK_STR(".")) || mk_str_eq(name, MK_STR(".."));
}

mk_err mk_folder_list(int fd, unsigned most, void (*on_name)(mk_str name, void *data), void *data)
{
    _Alignas(struct dir_entry) char records[PIECE];
    unsigned n = 0;
    long got;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return mk_err_last();
    while ((got = syscall(SYS_getdents64, fd, records, sizeof records)) > 0) {
        for (long at = 0; at < got;) {
            const struct dir_entry *r = (const struct dir_entry *)(const void *)(records + at);
            mk_str name = mk_str_from_c(r->name);
            at += r->len;
            if (is_dot_or_dot_dot(name))
                continue;
            if (n++ == most)
                return -E2BIG;
            on_name(name, data);
        }
    }
    return got < 0 ? mk_err_last() : 0;
}
