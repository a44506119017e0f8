/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/coldread.h"

#include <unistd.h>

#include "base/mem.h"
#include "web/filter.h"

enum { BELIEVED_MS = 1000, PIECE = 32 * 1024 };

struct mk_coldread {
    struct mk_offload_job job;
    struct mk_open_file *file; /* a reference, so the descriptor stays open */
    int fd;
    uint64_t offset, len;
    void (*on_read)(void *data); /* NULL: the request has ended */
    void *data;
};

static uint64_t window_of(uint64_t len)
{
    return len < MK_COLDREAD_WINDOW ? len : MK_COLDREAD_WINDOW;
}

bool mk_coldread_is_warm(struct mk_service *s, struct mk_open_file *f, uint64_t offset, uint64_t len)
{
    bool one_window = f->size <= MK_COLDREAD_WINDOW;
    if (one_window && (int32_t)(f->warm_until_ms - (uint32_t)s->loop->now_ms) > 0)
        return true;
    bool warm =
        one_window ? mk_file_is_cached(f->fd, 0, f->size) : mk_file_is_cached(f->fd, offset, window_of(len));
    if (warm)
        f->warm_until_ms = (uint32_t)s->loop->now_ms + BELIEVED_MS;
    return warm;
}

/* Runs in a thread. The data is discarded; the point is that it is in the page cache then. */
static void read_through(struct mk_offload_job *job)
{
    struct mk_coldread *r = MK_CONTAINER(job, struct mk_coldread, job);
    char waste[PIECE];
    for (uint64_t done = 0; done < r->len;) {
        ssize_t n = pread(r->fd, waste, sizeof waste, (off_t)(r->offset + done));
        if (n <= 0)
            return; /* sending will run into the same error */
        done += (uint64_t)n;
    }
}

static void finish(struct mk_offload_job *job)
{
    struct mk_coldread *r = MK_CONTAINER(job, struct mk_coldread, job);
    mk_open_file_release(r->file);
    if (r->on_read)
        r->on_read(r->data);
    mk_mem_free(r);
}

struct mk_coldread *mk_coldread_start(struct mk_service *s, struct mk_open_file *f, uint64_t offset,
                                      uint64_t len, void (*on_read)(void *data), void *data)
{
    struct mk_coldread *r = mk_mem_alloc(sizeof *r);
    if (!r)
        return NULL;
    *r = (struct mk_coldread){.job = {.run = read_through, .done = finish},
                              .file = f,
                              .fd = f->fd,
                              .offset = offset,
                              .len = window_of(len),
                              .on_read = on_read,
                              .data = data};
    if (!mk_offload_submit(&s->helper, &r->job)) {
        mk_mem_free(r);
        return NULL;
    }
    f->refs++;
    mk_counter_add(&s->counters->cold_reads, 1);
    return r;
}

struct mk_coldread *mk_coldread_missed(struct mk_service *s, struct mk_content *content, bool *in_the_way,
                                       void (*on_read)(void *data), void *data)
{
    struct mk_content *origin = mk_filter_origin(content);
    struct mk_part *part = origin->source ? NULL : mk_content_part(origin);
    *in_the_way = part && part->file && part->missed;
    if (!*in_the_way)
        return NULL;
    part->missed = false;
    part->warm_to = part->offset + window_of(part->len);
    return mk_coldread_start(s, part->file, part->offset, part->len, on_read, data);
}

void mk_coldread_forget(struct mk_coldread *r)
{
    r->on_read = NULL;
}
