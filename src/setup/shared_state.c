/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/shared_state.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/stats.h"
#include "os/fd.h"
#include "setup/stat_file.h"

struct mk_shared_state_region {
    struct mk_shared_state_region *next;
    char name[MK_SHARED_STATE_NAME_MAX];
    size_t name_len, size;
    void *memory;
};

struct mk_shared_state_fd {
    struct mk_shared_state_fd *next;
    char name[MK_SHARED_STATE_NAME_MAX];
    size_t name_len;
    int fd;
};

static struct mk_shared_state_region *find_region(const struct mk_shared_state *s, mk_str name, size_t size)
{
    struct mk_shared_state_region *r = s->first;
    while (r && (r->size != size || !mk_str_eq(mk_str_of(r->name, r->name_len), name)))
        r = r->next;
    return r;
}

void *mk_shared_state_get_memory(struct mk_shared_state *s, mk_str name, size_t size)
{
    struct mk_shared_state_region *r =
        name.len <= MK_SHARED_STATE_NAME_MAX ? find_region(s, name, size) : NULL;
    if (r)
        return r->memory;
    r = name.len <= MK_SHARED_STATE_NAME_MAX ? mk_mem_zalloc(1, sizeof *r) : NULL;
    if (!r)
        return NULL;
    void *memory = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        mk_mem_free(r);
        return NULL;
    }
    *r = (struct mk_shared_state_region){
        .next = s->first, .name_len = name.len, .size = size, .memory = memory};
    if (name.len)
        memcpy(r->name, name.p, name.len);
    s->first = r;
    return memory;
}

int mk_shared_state_fd(struct mk_shared_state *s, mk_str name, int (*make)(void))
{
    for (struct mk_shared_state_fd *f = s->fds; f; f = f->next)
        if (mk_str_eq(mk_str_of(f->name, f->name_len), name))
            return f->fd;
    if (name.len > MK_SHARED_STATE_NAME_MAX)
        return -ENAMETOOLONG;
    struct mk_shared_state_fd *f = mk_mem_zalloc(1, sizeof *f);
    int fd = f ? make() : -ENOMEM;
    if (fd < 0) {
        mk_mem_free(f);
        return fd;
    }
    *f = (struct mk_shared_state_fd){.next = s->fds, .name_len = name.len, .fd = fd};
    if (name.len)
        memcpy(f->name, name.p, name.len);
    s->fds = f;
    return fd;
}

/* Maps the memory file through which the parent server reads the statistics of this one. Returns NULL if
 * there is none. */
static struct mk_stat_registry *map_inherited_statistics(void)
{
    uint64_t fd;
    mk_str number = mk_str_from_c(getenv(MK_STAT_FILE_VARIABLE));
    return number.p && mk_num_parse(number, &fd) && fd <= INT32_MAX && mk_stat_file_clear((int)fd)
               ? mk_stat_file_map((int)fd, NULL)
               : NULL;
}

struct mk_stat_registry *mk_shared_state_get_statistics(struct mk_shared_state *s)
{
    if (!s->statistics) {
        s->statistics = map_inherited_statistics();
        s->has_statistics_file = s->statistics;
    }
    if (!s->statistics)
        s->statistics = mk_shared_state_get_memory(s, MK_STR("server: statistics"), mk_stat_size());
    return s->statistics;
}

/* Maps the private memory at the same address, because settings of the active generation may point there. */
bool mk_shared_state_detach_statistics(struct mk_shared_state *s)
{
    return !s->statistics || mmap(s->statistics, mk_stat_size(), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

void mk_shared_state_fini(struct mk_shared_state *s)
{
    while (s->fds) {
        struct mk_shared_state_fd *f = s->fds;
        s->fds = f->next;
        mk_fd_close(&f->fd);
        mk_mem_free(f);
    }
    mk_folder_cache_fini(&s->folders);
    if (s->has_statistics_file)
        mk_stat_file_unmap(s->statistics);
    s->statistics = NULL;
    s->has_statistics_file = false;
    while (s->first) {
        struct mk_shared_state_region *r = s->first;
        s->first = r->next;
        munmap(r->memory, r->size ? r->size : 1);
        mk_mem_free(r);
    }
}
