/* SPDX-License-Identifier: Apache-2.0 */
/* Several clients send request bodies, which the server spools in pieces, with limits and disk failures: a
 * complete body equals the data sent, errors persist, the limits hold, and all space is released. The first
 * byte selects the limits; then each pair of bytes is one step. */
#include "os/spool.h"

#include <dirent.h>

#include "unit/site.h"
#include "web/spool_quota.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { K = 1024, ACTORS = 4, PEERS = 2, STEPS_MAX = 256, KEPT_MAX = 64 * K };

/* A request, and the input that its protocol has available. */
struct actor {
    struct mk_exchange *x; /* NULL: no request */
    struct mk_spool *spool;
    uint64_t length; /* body length, as in mk_request */
    uint64_t limit;
    uint64_t at, left; /* bytes read; bytes that can be read */
    mk_err ending;     /* result after these bytes: -EAGAIN, 0 or an error */
    int result;        /* result of the last call */
    bool is_dropped;
    bool in_memory; /* the body is in a memory file, not on the disk */
};

static struct site site;
static struct mk_addr peers[PEERS];
static struct actor actors[ACTORS];

/* ---- The disk ---- */

static uint64_t disk_left;
static size_t disk_piece; /* the longest write */
static int disk_error;
static bool disk_interrupts;

/* Replaces the C library's function. */
ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    if (disk_interrupts || !disk_left) {
        errno = disk_interrupts ? EINTR : disk_error;
        disk_interrupts = false;
        return -1;
    }
    n = mk_min(mk_min(n, disk_piece), disk_left);
    disk_left -= n;
    MK_ASSERT(lseek(fd, at, SEEK_SET) == at);
    return write(fd, bytes, n);
}

static void set_disk(uint8_t how)
{
    static const int errors[] = {ENOSPC, EDQUOT, EFBIG, EIO};
    disk_left = how & 1 ? (uint64_t)(how >> 4) * 20 * K : UINT64_MAX;
    disk_piece = how & 2 ? 4097 : SIZE_MAX;
    disk_error = errors[how >> 2 & 3];
    disk_interrupts = how & 2;
}

/* ---- The protocol ---- */

static char byte_at(const struct actor *a, uint64_t at)
{
    return (char)('a' + (at + (uint64_t)(a - actors) * 7) % 23);
}

static bool is_known(const struct actor *a)
{
    return a->length != MK_REQUEST_LENGTH_UNKNOWN;
}

static ssize_t on_read(void *ctx, char *buffer, size_t cap)
{
    struct actor *a = ctx;
    size_t n = mk_min(cap, a->left);
    if (is_known(a))
        n = mk_min(n, a->length - a->at);
    for (size_t i = 0; i < n; i++)
        buffer[i] = byte_at(a, a->at + i);
    a->at += n;
    a->left -= n;
    if (n)
        return (ssize_t)n;
    if (is_known(a) && a->at == a->length)
        return 0;
    return is_known(a) && a->ending == 0 ? -ECONNRESET : a->ending;
}

static void on_resume(void *ctx)
{
    (void)ctx;
}

static const struct mk_request_ops ops = {.read = on_read, .resume = on_resume};

/* ---- Steps ---- */

static void end_request(struct actor *a)
{
    if (a->x)
        mk_exchange_free(a->x);
    a->x = NULL;
}

static void start_request(struct actor *a, uint8_t how)
{
    end_request(a);
    *a = (struct actor){.length = how & 1 ? MK_REQUEST_LENGTH_UNKNOWN : (uint64_t)(how >> 2) * 3333,
                        .limit = how & 2 ? (uint64_t)(how >> 2) * 2048 : 0,
                        .ending = -EAGAIN,
                        .result = -EAGAIN};
    a->x = site_request(&site, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n");
    MK_ASSERT(a->x);
    a->x->request.ops = &ops;
    a->x->request.ops_ctx = a;
    a->x->request.length = a->length;
    a->x->request.peer = &peers[how % PEERS];
}

static void end(struct actor *a, uint8_t how)
{
    static const mk_err endings[] = {0, 0, -EBADMSG, -ECONNRESET, -EMSGSIZE, -EAGAIN};
    a->ending = endings[how % MK_LEN(endings)];
}

static void check_whole(struct actor *a)
{
    char buffer[777];
    uint64_t at = 0;
    ssize_t n;
    MK_ASSERT(mk_spool_length(a->spool) == a->at && (!a->limit || a->at <= a->limit));
    MK_ASSERT(!is_known(a) || a->at == a->length);
    while ((n = mk_spool_read(a->spool, buffer, sizeof buffer, at)) > 0)
        for (ssize_t i = 0; i < n; i++)
            MK_ASSERT(buffer[i] == byte_at(a, at++));
    MK_ASSERT(n == 0 && at == a->at);
}

static bool is_error(int e)
{
    static const int errors[] = {-EMSGSIZE, -EBADMSG, -ECONNRESET, -ENOSPC, -EIO,
                                 -EDQUOT,   -ENOENT,  -EOPNOTSUPP, -ENOMEM};
    for (size_t i = 0; i < MK_LEN(errors); i++)
        if (e == errors[i])
            return true;
    return false;
}

static void receive(struct actor *a)
{
    int before = a->result;
    a->result = mk_spool_request(&a->x->request, a->limit, &a->spool);
    if (before != -EAGAIN)
        MK_ASSERT(a->result == before);
    else if (a->result == 0)
        check_whole(a);
    else
        MK_ASSERT(a->result == -EAGAIN || is_error(a->result));
    MK_ASSERT(!is_error(a->result) || mk_spool_status(a->result) >= 400);
}

static void read_somewhere(struct actor *a, uint8_t where)
{
    char buffer[100];
    uint64_t at = (uint64_t)where * 1021;
    ssize_t n = mk_spool_read(a->spool, buffer, sizeof buffer, at);
    MK_ASSERT(n >= 0 && (n == 0) == (at >= a->at));
    for (ssize_t i = 0; i < n; i++)
        MK_ASSERT(buffer[i] == byte_at(a, at + (uint64_t)i));
}

/* Moves a body from memory to a memory file; that fails only if the disk is full. */
static void use_descriptor(struct actor *a)
{
    a->in_memory |= a->spool->fd < 0;
    int fd = mk_spool_fd(a->spool);
    MK_ASSERT(fd >= 0 || !disk_left);
    MK_ASSERT(fd < 0 || lseek(fd, 0, SEEK_END) == (off_t)a->at);
    if (fd >= 0)
        check_whole(a);
}

static void drop(struct actor *a)
{
    mk_spool_free(a->spool);
    a->is_dropped = true;
    struct mk_spool *again;
    MK_ASSERT(mk_spool_request(&a->x->request, a->limit, &again) == (a->result ? a->result : -EINVAL));
}

static void step(uint8_t what, uint8_t how)
{
    struct actor *a = &actors[what >> 6];
    bool is_whole = a->x && a->result == 0 && !a->is_dropped;
    switch (what & 15) {
    case 0:
        start_request(a, how);
        break;
    case 1:
        end_request(a);
        break;
    case 2:
        set_disk(how);
        break;
    case 3:
        end(a, how);
        break;
    case 4:
        if (is_whole)
            read_somewhere(a, how);
        break;
    case 5:
        if (is_whole)
            use_descriptor(a);
        break;
    case 6:
        if (is_whole)
            drop(a);
        break;
    default:
        a->left += (uint64_t)how * 200;
        if (a->x && !a->is_dropped)
            receive(a);
    }
}

/* ---- Invariants ---- */

/* Returns the size of the actor's body on the disk. */
static uint64_t stored_of(const struct actor *a)
{
    bool holds = a->x && a->spool && !a->is_dropped && (a->result == 0 || a->result == -EAGAIN);
    if (!holds)
        return 0;
    MK_ASSERT(a->spool->kept.cap <= KEPT_MAX);
    return a->in_memory ? 0 : a->spool->stored;
}

static void check_disk_space(void)
{
    const struct mk_spool_quota *all = &site.web.spools;
    uint64_t sums[PEERS] = {0}, sum = 0;
    for (size_t i = 0; i < ACTORS; i++)
        if (actors[i].x)
            sums[actors[i].x->request.peer - peers] += stored_of(&actors[i]);
    for (size_t i = 0; i < PEERS; i++) {
        MK_ASSERT(sums[i] <= all->max / 2);
        sum += sums[i];
    }
    MK_ASSERT(sum == all->stored);
}

static unsigned count_descriptors(void)
{
    unsigned n = 0;
    DIR *folder = opendir("/proc/self/fd");
    MK_ASSERT(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static void stop(void)
{
    site_fini(&site);
}

static void set_disk_space(uint8_t how)
{
    static const char *const nowhere = "/nowhere/at/all";
    site.web.spools.folder = how % 8 == 0 ? NULL : how % 8 == 1 ? nowhere : site.folder.path;
    site.web.spools.max = how & 8 ? UINT64_MAX : (uint64_t)(how >> 4) * 60 * K;
    set_disk(0);
}

static void start(void)
{
    site_init(&site);
    atexit(stop);
    for (uint8_t i = 0; i < PEERS; i++)
        peers[i] = (struct mk_addr){.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = (uint8_t)(i + 1)}};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool is_started;
    if (!is_started)
        start();
    is_started = true;
    unsigned n_descriptors = count_descriptors();
    set_disk_space(size ? data[0] : 0);
    for (size_t i = 1, steps = 0; i + 1 < size && steps < STEPS_MAX; i += 2, steps++) {
        step(data[i], data[i + 1]);
        check_disk_space();
    }
    for (size_t i = 0; i < ACTORS; i++)
        end_request(&actors[i]);
    check_disk_space();
    MK_ASSERT(site.web.spools.stored == 0 && count_descriptors() == n_descriptors);
    for (size_t i = 0; i < MK_SPOOL_BUCKETS; i++)
        MK_ASSERT(!site.web.spools.clients[i]);
    return 0;
}
