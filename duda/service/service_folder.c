/* SPDX-License-Identifier: Apache-2.0 */
/* Folders with files of a service, such as its templates. */
#include "service/service_folder.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <monkey/buf.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_folder_beside(const char *file, const char *name)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    struct mk_buf path = mk_buf_growing(PATH_MAX);
    if (!slash || file[0] != '/')
        return -1;
    mk_buf_addf(&path, "%.*s/%s", (int)(slash - file), file, name);
    mk_buf_add_char(&path, '\0');
    int fd = path.failed ? -1 : open(path.p, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mk_buf_free(&path);
    return fd;
}

int duda_service_folder_open(const struct duda_service *service, const char *name)
{
    Dl_info info;
    int fd = dladdr(service, &info) && info.dli_fname ? open_folder_beside(info.dli_fname, name) : -1;
    return fd < 0 ? open_folder_beside(service->file, name) : fd;
}

bool duda_service_folder_is_folder(int folder, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

int duda_service_folder_read(int folder, const char *name, size_t max, struct mk_buf *out)
{
    struct stat st;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    int e = fstat(fd, &st) ? -errno : 0;
    if (!e && (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max))
        e = -EFBIG;
    while (!e && mk_buf_reserve(out, 4096)) {
        ssize_t n = read(fd, out->p + out->len, 4096);
        if (n <= 0) {
            e = n < 0 ? -errno : 0;
            break;
        }
        out->len += (size_t)n;
    }
    close(fd);
    return e ? e : out->failed ? -ENOMEM : 0;
}
