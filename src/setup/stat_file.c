/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics in a memory file, through which one server reads those of another. The reader need not trust the
 * writer: a seal prevents the writer from truncating the file, and a page of zeros after the mapping ends
 * each string. */
#include "setup/stat_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/stats.h"

static size_t page_size(void)
{
    long n = sysconf(_SC_PAGESIZE);
    return n > 0 ? (size_t)n : 4096;
}

static size_t mapped_size(void)
{
    size_t page = page_size();
    return (mk_stat_size() + page - 1) / page * page;
}

int mk_stat_file_new(void)
{
    int fd = memfd_create("monkey-statistics", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)mapped_size()) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    int e = -errno;
    close(fd);
    return e;
}

bool mk_stat_file_clear(int fd)
{
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)mapped_size()) == 0;
}

struct mk_stat_registry *mk_stat_file_map(int fd, struct mk_stat_registry *instead_of)
{
    size_t size = mapped_size();
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size < (off_t)size)
        return NULL;
    char *at = (char *)instead_of;
    if (!at)
        at = mmap(NULL, size + page_size(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    void *registry = mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (registry != MAP_FAILED)
        return registry;
    if (!instead_of)
        munmap(at, size + page_size());
    return NULL;
}

void mk_stat_file_unmap(struct mk_stat_registry *registry)
{
    if (registry)
        munmap(registry, mapped_size() + page_size());
}
