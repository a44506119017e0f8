/* SPDX-License-Identifier: Apache-2.0 */
/* Queues a response body for a slow client: in memory while small, then in a file. */
#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/fd.h"
#include "os/spool.h"
#include "web/request_type.h"
#include "web/spool_quota.h"
#include "web/web.h"

enum {
    KEPT_MAX = 64 * 1024,      /* maximum bytes in memory */
    KEPT_MIN = 16 * 1024,      /* the same after the client has used up its share of memory */
    RELEASE_MIN = 1024 * 1024, /* hole-punching unit, a multiple of any block size */
};

struct mk_spool_queue {
    struct mk_spool spool;
    struct mk_offload_job job;
    struct mk_spool_quota *all;
    struct mk_spool_client *client;
    struct mk_request *request; /* for log messages */
    void (*on_writable)(void *ctx);
    void *ctx;
    uint64_t in_file;  /* copy of spool.stored, which is owned by the thread while it writes */
    uint64_t length;   /* write position in the spool */
    uint64_t read;     /* read position in the spool */
    uint64_t released; /* number of bytes at the start of the file that were released */
    uint64_t charged;
    size_t kept; /* charged buffer bytes */
    mk_err error;
    bool is_writing;   /* the thread owns the buffer and the end of the file */
    bool is_freed;     /* mk_spool_queue_free() was called while the thread was writing */
    bool has_waiter;   /* a caller waits for space, or for data being written */
    bool keeps_blocks; /* the file system cannot punch holes */
};

struct mk_spool_queue *mk_spool_queue_new(struct mk_request *request, void (*on_writable)(void *ctx),
                                          void *ctx)
{
    struct mk_spool_queue *q = mk_mem_zalloc(1, sizeof *q);
    if (!q)
        return NULL;
    *q = (struct mk_spool_queue){
        .all = &request->web->spools, .request = request, .on_writable = on_writable, .ctx = ctx};
    mk_spool_init(&q->spool, KEPT_MAX);
    q->client = mk_spool_client_acquire(q->all, request->peer);
    if (q->client)
        return q;
    mk_mem_free(q);
    return NULL;
}

static void release_quota(struct mk_spool_queue *q, uint64_t n)
{
    mk_spool_quota_release_response(q->all, q->client, n);
    q->charged -= n;
}

static void update_buffer_quota(struct mk_spool_queue *q)
{
    q->client->kept += q->spool.kept.cap;
    q->client->kept -= q->kept;
    q->kept = q->spool.kept.cap;
}

static void free_queue(struct mk_spool_queue *q)
{
    mk_spool_fini(&q->spool);
    release_quota(q, q->charged);
    q->client->kept -= q->kept;
    mk_spool_client_release(q->all, q->client);
    mk_mem_free(q);
}

void mk_spool_queue_free(struct mk_spool_queue *q)
{
    if (!q)
        return;
    q->is_freed = true;
    if (!q->is_writing) /* otherwise, on_file_written() frees the queue */
        free_queue(q);
}

/* ---- Writing to the file ---- */

static void write_file_job(struct mk_offload_job *job)
{
    struct mk_spool_queue *q = MK_CONTAINER(job, struct mk_spool_queue, job);
    q->error = mk_spool_write_to_file(&q->spool, q->all->folder);
}

/* Handles the end of a write. Data that could not be written stays in the buffer. */
static void finish_write(struct mk_spool_queue *q)
{
    q->is_writing = false;
    q->in_file = q->spool.stored;
    if (!q->error)
        return;
    release_quota(q, q->spool.kept.len);
    mk_request_log(q->request, MK_LOG_ERROR,
                   "cannot write the response to the SpoolFolder %s: %s; it continues at the speed of "
                   "the client",
                   q->all->folder, mk_err_text(q->error));
}

static void on_file_written(struct mk_offload_job *job)
{
    struct mk_spool_queue *q = MK_CONTAINER(job, struct mk_spool_queue, job);
    bool has_waiter = q->has_waiter;
    q->has_waiter = false;
    if (q->is_freed) {
        free_queue(q);
        return;
    }
    finish_write(q);
    if (has_waiter)
        q->on_writable(q->ctx);
}

/* Starts writing the buffer to the file. 0: the buffer has space now; -EAGAIN: a thread is writing. */
static int start_file_write(struct mk_spool_queue *q)
{
    uint64_t n = q->spool.kept.len;
    mk_err e = mk_spool_quota_charge_response(q->all, q->client, n);
    if (e)
        return e == -EOPNOTSUPP ? -EDQUOT : e;
    q->charged += n;
    q->job = (struct mk_offload_job){.run = write_file_job, .done = on_file_written};
    q->is_writing = q->all->helper && mk_offload_submit(q->all->helper, &q->job);
    q->has_waiter = q->is_writing;
    if (q->is_writing)
        return -EAGAIN;
    write_file_job(&q->job);
    finish_write(q);
    return q->error;
}

/* ---- Adding to the queue ---- */

/* Removes consumed bytes from the buffer. */
static void compact_buffer(struct mk_spool_queue *q)
{
    struct mk_buf *kept = &q->spool.kept;
    if (q->read <= q->in_file)
        return;
    size_t gone = (size_t)(q->read - q->in_file);
    memmove(kept->p, kept->p + gone, kept->len - gone);
    kept->len -= gone;
    q->length -= gone;
    q->read = q->in_file;
}

static size_t buffer_growth(const struct mk_spool_queue *q)
{
    size_t cap = q->spool.kept.cap;
    if (!cap)
        return mk_spool_client_may_buffer(q->client, KEPT_MAX) ? KEPT_MAX : KEPT_MIN;
    return cap < KEPT_MAX && mk_spool_client_may_buffer(q->client, KEPT_MAX - cap) ? KEPT_MAX - cap : 0;
}

static int reserve_buffer(struct mk_spool_queue *q)
{
    struct mk_buf *kept = &q->spool.kept;
    size_t more = buffer_growth(q);
    compact_buffer(q);
    if (kept->len < kept->cap)
        return 0;
    if (!more)
        return start_file_write(q);
    if (!mk_buf_reserve(kept, more))
        return -ENOMEM;
    update_buffer_quota(q);
    return 0;
}

int mk_spool_queue_reserve(struct mk_spool_queue *q, char **buf, size_t *cap)
{
    struct mk_buf *kept = &q->spool.kept;
    int e = 0;
    if (q->is_writing) {
        q->has_waiter = true;
        return -EAGAIN;
    }
    if (q->error)
        return q->error;
    if (kept->len == kept->cap)
        e = reserve_buffer(q);
    if (e)
        return e;
    *buf = kept->p + kept->len;
    *cap = kept->cap - kept->len;
    return 0;
}

void mk_spool_queue_add(struct mk_spool_queue *q, size_t n)
{
    q->spool.kept.len += n;
    q->length += n;
}

/* ---- Reading from the queue ---- */

/* Releases the disk space of data that was read, so that a long response does not need space for all of
 * it. */
static void punch_read_blocks(struct mk_spool_queue *q)
{
    uint64_t end = mk_min(q->read, q->in_file), n = end > q->released ? end - q->released : 0;
    n -= n % RELEASE_MIN;
    if (!n || q->keeps_blocks)
        return;
    q->keeps_blocks =
        fallocate(q->spool.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)q->released, (off_t)n) < 0;
    if (q->keeps_blocks)
        return;
    q->released += n;
    release_quota(q, n);
}

/* Called when everything was read: restarts without a file. */
static void restart_without_file(struct mk_spool_queue *q)
{
    mk_buf_clear(&q->spool.kept);
    mk_fd_close(&q->spool.fd);
    q->spool.stored = q->in_file = q->length = q->read = q->released = 0;
    release_quota(q, q->charged);
}

static ssize_t read_from_file(const struct mk_spool_queue *q, char *buf, size_t cap)
{
    ssize_t n;
    do
        n = pread(q->spool.fd, buf, mk_min(cap, q->in_file - q->read), (off_t)q->read);
    while (n < 0 && errno == EINTR);
    return n > 0 ? n : n < 0 ? mk_err_last() : -EIO;
}

static size_t read_from_buffer(const struct mk_spool_queue *q, char *buf, size_t cap)
{
    mk_str rest = mk_str_first(mk_str_skip(mk_buf_str(&q->spool.kept), (size_t)(q->read - q->in_file)), cap);
    memcpy(buf, rest.p, rest.len);
    return rest.len;
}

ssize_t mk_spool_queue_read(struct mk_spool_queue *q, char *buf, size_t cap)
{
    bool is_in_file = q->read < q->in_file;
    if (q->read == q->length)
        return 0;
    if (!is_in_file && q->is_writing) {
        q->has_waiter = true;
        return -EAGAIN;
    }
    ssize_t n = is_in_file ? read_from_file(q, buf, cap) : (ssize_t)read_from_buffer(q, buf, cap);
    if (n < 0)
        return n;
    q->read += (uint64_t)n;
    if (q->read == q->length)
        restart_without_file(q);
    else if (is_in_file)
        punch_read_blocks(q);
    return n;
}
