/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder/recorder_store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(struct mk_recorder_record) == 512, "the size is a part of the format");
_Static_assert(sizeof(struct mk_recorder_slot) == 64, "the size is a part of the format");
_Static_assert(MK_RECORDER_HOST_MAX + MK_RECORDER_PATH_MAX + MK_RECORDER_ID_MAX + MK_RECORDER_ROUTE_MAX +
                       MK_RECORDER_UPSTREAM_MAX + MK_RECORDER_REASON_MAX <=
                   MK_RECORDER_TEXT_SIZE,
               "a record has space for all texts");

/* ---- Files ---- */

static const char *check_file(int fd, off_t *size)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return strerror(errno);
    if (!S_ISREG(st.st_mode))
        return "it is not a regular file";
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return "it belongs to another user";
    *size = st.st_size;
    return NULL;
}

static const char *write_header(int fd, const struct mk_recorder_header *h)
{
    int e = posix_fallocate(fd, 0,
                            (off_t)mk_recorder_total_size(h)); /* a full disk must not kill workers later */
    if (e)
        return strerror(e);
    return pwrite(fd, h, sizeof *h, 0) == (ssize_t)sizeof *h ? NULL : strerror(errno);
}

static const char *create_file(const char *path, const struct mk_recorder_header *wanted, int *fd)
{
    (void)unlink(path);
    *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    const char *error = *fd < 0 ? strerror(errno) : write_header(*fd, wanted);
    if (error && *fd >= 0)
        (void)unlink(path);
    return error;
}

static bool is_same_format(const struct mk_recorder_header *a, const struct mk_recorder_header *b)
{
    return a->version == b->version && a->record_size == b->record_size && a->n_slots == b->n_slots &&
           a->n_requests == b->n_requests && a->n_failures == b->n_failures;
}

/* *is_usable: the file has the wanted format. *fd is -1 if there is no file. */
static const char *open_existing_file(const char *path, const struct mk_recorder_header *wanted, int *fd,
                                      bool *is_usable)
{
    struct mk_recorder_header h;
    off_t size;
    *is_usable = false;
    *fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (*fd < 0)
        return errno == ENOENT ? NULL : errno == ELOOP ? "it is a symbolic link" : strerror(errno);
    const char *error = check_file(*fd, &size);
    if (error || size == 0)
        return error;
    if (pread(*fd, &h, sizeof h, 0) != (ssize_t)sizeof h ||
        memcmp(h.magic, wanted->magic, sizeof h.magic) != 0)
        return "it exists and is not a recording";
    *is_usable = is_same_format(&h, wanted) && size == (off_t)mk_recorder_total_size(wanted);
    return fchmod(*fd, S_IRUSR | S_IWUSR) < 0 ? strerror(errno) : NULL;
}

/* ---- Names ---- */

/* The names of a recording: of the current one, of the one of another size that it has replaced, and of one that is
 * incomplete. */
struct names {
    const char *path;
    char old[PATH_MAX], new[PATH_MAX];
};

static bool set_names(struct names *n, const char *path)
{
    n->path = path;
    return snprintf(n->old, sizeof n->old, "%s.1", path) < (int)sizeof n->old &&
           snprintf(n->new, sizeof n->new, "%s.new", path) < (int)sizeof n->new;
}

enum { EXCHANGE = 2 }; /* RENAME_EXCHANGE: musl declares neither the name nor renameat2() */

/* Exchanges two files, so that readers always find one. File systems that cannot do so rename them one after the
 * other. */
static const char *exchange_files(const char *a, const char *b)
{
    char free_name[PATH_MAX];
    if (syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, EXCHANGE) == 0)
        return NULL;
    if ((errno != EINVAL && errno != ENOSYS) ||
        snprintf(free_name, sizeof free_name, "%s.swap", a) >= (int)sizeof free_name)
        return strerror(errno);
    return rename(a, free_name) < 0 || rename(b, a) < 0 || rename(free_name, b) < 0 ? strerror(errno) : NULL;
}

/* The file FILE.1 may be that of workers that are draining. */
static const char *check_unused(int fd)
{
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return NULL;
    return "workers still write to the recording before it, FILE.1, so that it cannot be replaced: reload "
           "later";
}

/* Replaces a recording of another format, which becomes FILE.1. If FILE.1 has the wanted format, it returns. */
static const char *replace_file(const struct names *n, const struct mk_recorder_header *wanted, int *fd)
{
    bool is_usable;
    const char *error = open_existing_file(n->old, wanted, fd, &is_usable);
    if (!error && is_usable)
        return exchange_files(n->path, n->old);
    if (!error)
        error = check_unused(*fd);
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    if (!error)
        error = create_file(n->new, wanted, fd);
    if (!error)
        error = exchange_files(n->path, n->new);
    if (!error && rename(n->new, n->old) < 0)
        error = strerror(errno);
    return error;
}

static const char *open_or_create_file(struct mk_recorder_store *s, const char *path,
                                       const struct mk_recorder_header *wanted)
{
    struct names n;
    bool is_usable;
    if (!set_names(&n, path))
        return strerror(ENAMETOOLONG);
    const char *error = open_existing_file(path, wanted, &s->fd, &is_usable);
    if (error || is_usable)
        return error;
    bool exists = s->fd >= 0;
    if (exists) {
        close(s->fd);
        s->replaced = path;
        return replace_file(&n, wanted, &s->fd);
    }
    error = create_file(n.new, wanted, &s->fd);
    return !error && rename(n.new, path) < 0 ? strerror(errno) : error;
}

/* ---- Return to the replaced recording ---- */

/* Changes with each request. */
static uint64_t count_requests(const struct mk_recorder_store *s)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < s->header.n_slots; i++)
        sum += (i + 1) * (uint64_t)mk_recorder_store_slot(s, i)->next_request;
    return sum;
}

/* The recording has replaced another one for a configuration that was then rejected: workers still write to the other
 * one. */
static void return_to_replaced_file(const struct mk_recorder_store *s)
{
    struct names n;
    struct stat own, at_path;
    if (!set_names(&n, s->replaced) || count_requests(s) != s->n_before || fstat(s->fd, &own) < 0 ||
        lstat(n.path, &at_path) < 0 || own.st_dev != at_path.st_dev || own.st_ino != at_path.st_ino)
        return;
    if (s->n_before)
        (void)exchange_files(n.path, n.old);
    else
        (void)rename(n.old, n.path);
}

/* ---- Owners ---- */

struct mk_recorder_slot *mk_recorder_store_slot(const struct mk_recorder_store *s, unsigned i)
{
    return (struct mk_recorder_slot *)((char *)s->map + MK_RECORDER_PAGE +
                                       i * mk_recorder_slot_size(s->header.n_requests, s->header.n_failures));
}

/* The lock belongs to the open file, which all processes of a server inherit. If no other server holds it, all
 * owners have exited. */
static void release_slots_of_exited_servers(struct mk_recorder_store *s)
{
    if (flock(s->fd, LOCK_EX | LOCK_NB) == 0)
        for (unsigned i = 0; i < s->header.n_slots; i++)
            __atomic_store_n(&mk_recorder_store_slot(s, i)->owner, 0, __ATOMIC_SEQ_CST);
    (void)flock(s->fd, LOCK_SH);
}

/* Locks the slot for this process until it exits. Returns false if another process owns the slot. */
static bool lock_slot(const struct mk_recorder_store *s, const struct mk_recorder_slot *slot)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    lock.l_start = (const char *)slot - (const char *)s->map;
    return fcntl(s->fd, F_SETLK, &lock) == 0;
}

static struct mk_recorder_slot *claim_slot(const struct mk_recorder_store *s, bool of_exited)
{
    for (unsigned i = 0; i < s->header.n_slots; i++) {
        struct mk_recorder_slot *slot = mk_recorder_store_slot(s, i);
        uint64_t owner = __atomic_load_n(&slot->owner, __ATOMIC_SEQ_CST), own = (uint64_t)getpid();
        if (owner != own && (owner != 0) == of_exited && lock_slot(s, slot) &&
            __atomic_compare_exchange_n(&slot->owner, &owner, own, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return slot;
    }
    return NULL;
}

/* Slots of exited processes come first, so that their requests in flight are soon marked as lost. */
struct mk_recorder_slot *mk_recorder_store_claim(const struct mk_recorder_store *s)
{
    struct mk_recorder_slot *slot = claim_slot(s, true);
    return slot ? slot : claim_slot(s, false);
}

/* ---- Opening ---- */

bool mk_recorder_store_is_whole(const struct mk_recorder_store *s)
{
    struct stat st;
    return fstat(s->fd, &st) == 0 && st.st_size >= (off_t)mk_recorder_total_size(&s->header);
}

const char *mk_recorder_store_open(struct mk_recorder_store *s, const char *path,
                                   const struct mk_recorder_header *wanted)
{
    s->header = *wanted;
    s->opener = getpid();
    const char *error = open_or_create_file(s, path, wanted);
    if (error)
        return error;
    s->map = mmap(NULL, mk_recorder_total_size(wanted), PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (s->map == MAP_FAILED) {
        s->map = NULL;
        return strerror(errno);
    }
    s->n_before = count_requests(s);
    release_slots_of_exited_servers(s);
    return NULL;
}

void mk_recorder_store_close(struct mk_recorder_store *s)
{
    if (s->map && s->replaced && s->opener == getpid())
        return_to_replaced_file(s);
    if (s->map)
        (void)munmap(s->map, mk_recorder_total_size(&s->header));
    if (s->fd >= 0)
        close(s->fd);
    s->map = NULL;
    s->replaced = NULL;
    s->fd = -1;
}
