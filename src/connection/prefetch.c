/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/prefetch.h"

#include <unistd.h>

#include "base/mem.h"
#include "web/filter.h"

enum { BELIEVED_MS = 1000, PIECE = 32 * 1024 };

struct mk_prefetch {
    struct mk_offload_job job;
    struct mk_open_file *file; /* a reference, so the descriptor stays open */
    int fd;
    uint64_t offset, len;
    void (*on_read)(void *data); /* NULL: the request has ended */
    void *data;
};

static uint64_t clamp_to_window(uint64_t len)
{
    return len < MK_PREFETCH_WINDOW ? len : MK_PREFETCH_WINDOW;
}

bool mk_prefetch_is_cached(struct mk_conn_manager *s, struct mk_open_file *f, uint64_t offset, uint64_t len)
{
    bool one_window = f->size <= MK_PREFETCH_WINDOW;
    if (one_window && (int32_t)(f->warm_until_ms - (uint32_t)s->loop->now_ms) > 0)
        return true;
    bool warm = one_window ? mk_file_is_cached(f->fd, 0, f->size)
                           : mk_file_is_cached(f->fd, offset, clamp_to_window(len));
    if (warm)
        f->warm_until_ms = (uint32_t)s->loop->now_ms + BELIEVED_MS;
    return warm;
}

/* Runs in a thread. The data is discarded: reading puts it into the page cache. */
static void read_into_page_cache(struct mk_offload_job *job)
{
    struct mk_prefetch *r = MK_CONTAINER(job, struct mk_prefetch, job);
    char waste[PIECE];
    for (uint64_t done = 0; done < r->len;) {
        ssize_t n = pread(r->fd, waste, sizeof waste, (off_t)(r->offset + done));
        if (n <= 0)
            return; /* sending will hit the same error */
        done += (uint64_t)n;
    }
}

static void finish_prefetch(struct mk_offload_job *job)
{
    struct mk_prefetch *r = MK_CONTAINER(job, struct mk_prefetch, job);
    mk_open_file_release(r->file);
    if (r->on_read)
        r->on_read(r->data);
    mk_mem_free(r);
}

struct mk_prefetch *mk_prefetch_start(struct mk_conn_manager *s, struct mk_open_file *f, uint64_t offset,
                                      uint64_t len, void (*on_read)(void *data), void *data)
{
    struct mk_prefetch *r = mk_mem_alloc(sizeof *r);
    if (!r)
        return NULL;
    *r = (struct mk_prefetch){.job = {.run = read_into_page_cache, .done = finish_prefetch},
                              .file = f,
                              .fd = f->fd,
                              .offset = offset,
                              .len = clamp_to_window(len),
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

struct mk_prefetch *mk_prefetch_start_for_body(struct mk_conn_manager *s, struct mk_response_body *content,
                                               bool *awaits_disk, void (*on_read)(void *data), void *data)
{
    struct mk_response_body *origin = mk_filter_unfiltered_body(content);
    struct mk_response_body_part *part = origin->source ? NULL : mk_response_body_current_part(origin);
    *awaits_disk = part && part->file && part->missed;
    if (!*awaits_disk)
        return NULL;
    part->missed = false;
    part->cached_up_to = part->offset + clamp_to_window(part->len);
    return mk_prefetch_start(s, part->file, part->offset, part->len, on_read, data);
}

void mk_prefetch_detach(struct mk_prefetch *r)
{
    r->on_read = NULL;
}
