/* SPDX-License-Identifier: Apache-2.0 */
#include "listing.h"

#include <errno.h>
#include <monkey/mem.h>
#include <monkey/worker.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OUT_MAX = 256 * 1024, /* enough for a head with a very long path */
    OUT_WANTED = 4096,    /* bytes to collect before sending */
    LINKS_PER_READ = 32,  /* links that one read resolves, because opening them blocks the loop */
};

const char *const dirlisting_sort_words[] = {"name", "size", "time", "none", NULL};

static bool should_sort(const struct listing *l)
{
    return l->options.sort != SORT_NONE && !l->is_large;
}

enum sort_key dirlisting_listing_sort_key(const struct listing *l)
{
    return should_sort(l) ? l->options.sort : SORT_NONE;
}

static void free_sort_store(struct listing *l)
{
    *l->shared -= l->store.memory;
    dirlisting_entry_store_free(&l->store);
}

static void free_listing(struct listing *l)
{
    close(l->folder.fd);
    dirlisting_entry_store_free(&l->store);
    mk_buf_free(&l->out);
    mk_mem_free(l);
}

/* ---- In a helper thread, which may wait for the disk ---- */

static void read_and_sort_in_thread(void *ctx)
{
    struct listing *l = ctx;
    if (l->step == STEP_SORT)
        dirlisting_entry_store_sort(&l->store, l->options.sort, l->options.down);
    else
        dirlisting_folder_read(&l->folder);
}

static void on_thread_done(void *ctx)
{
    struct listing *l = ctx;
    l->running = false;
    if (l->closed)
        free_listing(l);
    else
        mk_request_resume(l->request);
}

/* Returns -EAGAIN while a thread reads; 0 if this function has read the block itself, because no thread was
 * available. */
static int offload_reading(struct listing *l)
{
    l->at = 0;
    l->running = true;
    if (mk_worker_offload(l->worker, read_and_sort_in_thread, on_thread_done, l) == 0)
        return -EAGAIN;
    l->running = false;
    l->n_resolved = LINKS_PER_READ; /* makes the caller yield after this blocking read */
    read_and_sort_in_thread(l);
    return 0;
}

/* ---- Entries ---- */

static bool is_name_hidden(const struct listing *l, mk_str name)
{
    for (size_t i = 0; i < l->settings->hide.n; i++)
        if (mk_str_match(name, l->settings->hide.v[i]))
            return true;
    return false;
}

/* Replaces a link with its target. Returns false if clients may not request the target. */
static bool resolve_link(struct listing *l, struct entry *e)
{
    char buf[8192];
    struct mk_buf path = mk_buf_fixed(buf, sizeof buf);
    struct stat st;
    mk_buf_add(&path, l->path);
    mk_buf_add(&path, e->name);
    l->n_resolved++;
    int fd = path.failed ? -ENAMETOOLONG : mk_request_open(l->request, mk_buf_str(&path));
    if (fd < 0)
        return false;
    bool ok = fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
    close(fd);
    if (!ok)
        return false;
    e->kind = S_ISDIR(st.st_mode) ? ENTRY_FOLDER : ENTRY_FILE;
    e->size = st.st_size;
    e->mtime = st.st_mtime;
    return true;
}

/* Gets the next entry of the folder. Returns 1, 0 at the end, or -EAGAIN if the entry is not available
 * yet. */
static int next_folder_entry(struct listing *l, struct entry *e)
{
    for (;;) {
        if (l->running || l->n_resolved >= LINKS_PER_READ)
            return -EAGAIN;
        if (l->folder.error)
            return l->folder.error;
        if (l->at < l->folder.n) {
            *e = l->folder.entries[l->at++];
            if (!is_name_hidden(l, e->name) && (e->kind != ENTRY_LINK || resolve_link(l, e)))
                return 1;
            continue;
        }
        if (l->folder.ended)
            return 0;
        if (offload_reading(l) != 0)
            return -EAGAIN;
    }
}

static int next_entry(struct listing *l, struct entry *e)
{
    if (!should_sort(l))
        return next_folder_entry(l, e);
    if (l->at == l->store.n)
        return 0;
    dirlisting_entry_store_get(&l->store, l->at++, e);
    return 1;
}

/* Starts again in the order of the file system, because the folder is too large to be sorted. */
static void restart_unsorted(struct listing *l)
{
    free_sort_store(l);
    dirlisting_folder_rewind(&l->folder);
    l->is_large = true;
    l->at = 0;
    l->step = STEP_HEAD;
}

/* Stores an entry or, if `e` is NULL, allocates memory for sorting. All listings of a worker share a
 * limit. */
static bool store_entry(struct listing *l, const struct entry *e)
{
    size_t others = *l->shared - l->store.memory, max = l->settings->sort_memory;
    l->store.memory_max = max > others ? max - others : 0;
    bool ok = e ? dirlisting_entry_store_add(&l->store, e) : dirlisting_entry_store_reserve_index(&l->store);
    *l->shared = others + l->store.memory;
    return ok;
}

static int collect_entries(struct listing *l)
{
    struct entry e;
    int got;
    while ((got = next_folder_entry(l, &e)) > 0)
        if (!store_entry(l, &e)) {
            restart_unsorted(l);
            return 0;
        }
    if (got < 0)
        return got;
    if (!store_entry(l, NULL)) {
        restart_unsorted(l);
        return 0;
    }
    l->step = STEP_SORT;
    return offload_reading(l);
}

/* ---- Text ---- */

static int write_entries(struct listing *l)
{
    struct entry e;
    while (l->out.len < OUT_WANTED) {
        int got = next_entry(l, &e);
        if (got < 0)
            return got;
        if (got == 0) {
            l->step = STEP_FOOT;
            return 0;
        }
        l->options.format->entry(l, &e, &l->out);
        l->n_shown++;
        if (e.kind != ENTRY_FOLDER && e.size > 0)
            l->bytes_shown += (uint64_t)e.size;
    }
    return 0;
}

/* Runs the current step. The caller repeats it until there is output or an error. */
static int run_listing_step(struct listing *l)
{
    if (l->running)
        return -EAGAIN;
    switch (l->step) {
    case STEP_COLLECT:
        return collect_entries(l);
    case STEP_SORT: /* the thread has finished sorting */
        l->step = STEP_HEAD;
        return 0;
    case STEP_HEAD:
        l->options.format->write_head(l, &l->out);
        l->step = STEP_ENTRIES;
        return 0;
    case STEP_ENTRIES:
        return write_entries(l);
    case STEP_FOOT:
        l->options.format->write_foot(l, &l->out);
        l->step = STEP_END;
        return 0;
    case STEP_END:
        break;
    }
    return 0;
}

static size_t copy_output(struct listing *l, char *buf, size_t cap)
{
    mk_str left = mk_str_first(mk_str_skip(mk_buf_str(&l->out), l->sent), cap);
    if (left.len)
        memcpy(buf, left.p, left.len);
    l->sent += left.len;
    if (l->sent == l->out.len) {
        mk_buf_clear(&l->out);
        l->sent = 0;
    }
    return left.len;
}

/* Discards buffered output, because a client must not mistake a truncated entry for a complete one. */
static int set_listing_error(struct listing *l, int e)
{
    l->error = e;
    mk_buf_clear(&l->out);
    mk_request_log(l->request, MK_LOG_ERROR, "listing the folder: %s", strerror(-e));
    return e;
}

static int run_listing_step_checked(struct listing *l)
{
    int e = l->error ? l->error : run_listing_step(l);
    if (l->out.failed)
        e = -ENOMEM;
    return e && e != -EAGAIN && !l->error ? set_listing_error(l, e) : e;
}

static ssize_t read_listing(void *ctx, char *buf, size_t cap)
{
    struct listing *l = ctx;
    size_t n = 0;
    l->n_resolved = 0;
    for (;;) {
        n += copy_output(l, buf + n, cap - n);
        if (n == cap || (l->step == STEP_END && l->out.len == 0))
            return (ssize_t)n;
        int e = run_listing_step_checked(l);
        if (!e || l->out.len)
            continue;
        if (e == -EAGAIN && n == 0 && !l->running) /* yields to other connections */
            mk_request_resume(l->request);
        return n ? (ssize_t)n : e;
    }
}

static void close_listing(void *ctx)
{
    struct listing *l = ctx;
    *l->shared -= l->store.memory; /* not in free_listing(), which may run after the worker was freed */
    l->closed = true;
    if (!l->running)
        free_listing(l);
}

const struct mk_body_source_ops dirlisting_source = {.read = read_listing, .close = close_listing};

struct listing *dirlisting_listing_new(struct mk_request *request, int fd, const struct settings *settings,
                                       size_t *shared, const struct listing_options *options)
{
    struct listing *l = mk_mem_zalloc(1, sizeof *l);
    if (!l) {
        close(fd);
        return NULL;
    }
    l->request = request;
    l->worker = mk_request_worker(request);
    l->settings = settings;
    l->shared = shared;
    l->path = mk_request_path(request);
    l->options = *options;
    l->step = options->sort == SORT_NONE ? STEP_HEAD : STEP_COLLECT;
    l->out = mk_buf_growing(OUT_MAX);
    l->store.n_max = settings->sort_max;
    l->folder.fd = fd;
    l->folder.shows_dot_files = mk_request_shows_dot_files(request);
    return l;
}
