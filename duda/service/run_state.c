/* SPDX-License-Identifier: Apache-2.0 */
#include "service/run_state.h"

#include <duda/store_backend.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 1024 };

/* A part of the environment variable. */
struct run_state {
    mk_str folder, key_file;
};

/* The variable counts only in the server that `monkey run` has started itself: a program that a service starts
 * inherits the environment, and must not map the memory. */
static bool get_run_state(struct run_state *s)
{
    uint64_t pid;
    mk_str rest = mk_str_from_c(getenv(DUDA_RUN_STATE_VARIABLE));
    if (!mk_num_parse(mk_str_cut(&rest, ':'), &pid) || (pid_t)pid != getppid())
        return false;
    s->folder = mk_str_cut(&rest, ':');
    s->key_file = rest;
    return s->folder.len > 0;
}

struct mapping {
    void *memory;
    size_t size;
};

static void unmap_memory(void *data)
{
    const struct mapping *m = data;
    munmap(m->memory, m->size);
}

/* Maps the file, and creates it on first use: a new file contains zeros. Returns NULL on failure. */
static void *map_file(const char *path, size_t size)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return NULL;
    bool ok = fstat(fd, &st) == 0 && ((size_t)st.st_size == size || ftruncate(fd, (off_t)size) == 0);
    void *memory = ok ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

static bool format_file_path(char path[PATH_SIZE], mk_str folder, const char *name, size_t size)
{
    struct mk_buf b = mk_buf_fixed(path, PATH_SIZE);
    mk_buf_addf(&b, "%.*s/state-", MK_STR_ARG(folder));
    for (const char *at = name; *at; at++)
        mk_buf_add_char(&b, *at == '/' ? '-' : *at);
    mk_buf_addf(&b, "-%zu%c", size, 0);
    return !b.failed;
}

void *duda_shared_memory(struct mk_config *config, const char *name, size_t size)
{
    char path[PATH_SIZE];
    struct run_state state;
    if (!get_run_state(&state) || !format_file_path(path, state.folder, name, size))
        return mk_config_shared(config, name, size);
    struct mapping *m = mk_config_alloc(config, sizeof *m);
    void *memory = m ? map_file(path, size) : NULL;
    if (!memory)
        return mk_config_shared(config, name, size);
    *m = (struct mapping){memory, size};
    if (mk_config_add_cleanup(config, unmap_memory, m))
        return memory;
    unmap_memory(m);
    return NULL;
}

bool duda_run_state_read_key(unsigned char *key, size_t size)
{
    char path[PATH_SIZE];
    struct run_state state;
    struct mk_buf b = mk_buf_fixed(path, sizeof path);
    if (!get_run_state(&state))
        return false;
    mk_buf_addf(&b, "%.*s%c", MK_STR_ARG(state.key_file), 0);
    int fd = b.failed ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && read(fd, key, size) == (ssize_t)size;
    if (fd >= 0)
        close(fd);
    return ok;
}
