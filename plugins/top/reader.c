/* SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <monkey/access_record.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 64, TRIES = 3 };

const char *top_reader_header(const struct top_source *source, struct mk_recorder_header *out)
{
    ssize_t n = source->read(source->ctx, out, sizeof *out, 0);
    if (n < 0)
        return strerror((int)-n);
    if (n != (ssize_t)sizeof *out || memcmp(out->magic, MK_RECORDER_MAGIC, sizeof out->magic) != 0)
        return "it is not a recording";
    if (out->version != MK_RECORDER_VERSION || out->record_size != sizeof(struct mk_recorder_record))
        return "it has the format of another version of the plugin";
    if (out->n_slots > MK_RECORDER_SLOTS_MAX || out->n_requests > MK_RECORDER_RECORDS_MAX ||
        out->n_failures > MK_RECORDER_RECORDS_MAX)
        return "its header is damaged";
    return NULL;
}

/* ---- Records ---- */

bool top_reader_set_texts(struct top_entry *e)
{
    size_t at = 0;
    for (unsigned i = 0; i < MK_RECORDER_TEXTS; i++) {
        if (e->record.len[i] > MK_RECORDER_TEXT_SIZE - at)
            return false;
        e->text[i] = mk_str_of(e->record.text + at, e->record.len[i]);
        at += e->record.len[i];
    }
    e->is_path_cut = e->record.len[MK_RECORDER_PATH] >= MK_RECORDER_PATH_MAX;
    if (e->is_path_cut)
        e->text[MK_RECORDER_PATH].len = MK_RECORDER_PATH_MAX - 1;
    return true;
}

int top_reader_decode(const struct mk_recorder_record *raw, uint64_t owner, struct top_entry *out)
{
    uint64_t version = __atomic_load_n(&raw->version, __ATOMIC_RELAXED);
    if (version == 0 && raw->state == MK_RECORDER_EMPTY)
        return 0;
    if (version & 1 || raw->check != version || raw->state >= MK_RECORDER_STATES)
        return -1;
    if (raw->state == MK_RECORDER_EMPTY)
        return 0;
    memcpy(&out->record, raw, sizeof out->record);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&raw->version, __ATOMIC_RELAXED) != version) /* in memory that a worker changes */
        return -1;
    if (!top_reader_set_texts(out) || raw->outcome > MK_OUTCOME_SHUTDOWN || raw->status > 999 ||
        raw->began_ms > INT64_MAX / 1000 || raw->duration_us > INT64_MAX / 1000)
        return -1;
    out->end_serial = out->record.state == MK_RECORDER_OPEN ? 0 : version / 2;
    if (out->record.state == MK_RECORDER_OPEN && owner != out->record.pid)
        out->record.state = MK_RECORDER_LOST;
    return 1;
}

/* Reads records twice. A worker may change a record while it is read: unless both copies are equal, the record gets an
 * odd version. Returns how many there are. */
static uint64_t read_records(const struct top_source *source, struct mk_recorder_record *raw, uint64_t n,
                             uint64_t offset)
{
    struct mk_recorder_record again[CHUNK];
    ssize_t got = source->read(source->ctx, raw, n * sizeof *raw, offset);
    ssize_t got_again = got > 0 ? source->read(source->ctx, again, (size_t)got, offset) : 0;
    uint64_t whole = got > 0 && got == got_again ? (uint64_t)got / sizeof *raw : 0;
    for (uint64_t i = 0; i < whole; i++)
        if (memcmp(&again[i], &raw[i], sizeof *raw) != 0)
            __atomic_store_n(&raw[i].version, 1, __ATOMIC_RELAXED);
    return whole;
}

/* A record that is being written is complete a moment later. */
static int decode_again(const struct top_source *source, uint64_t offset, uint64_t owner,
                        struct top_entry *entry)
{
    struct mk_recorder_record raw;
    int result = -1;
    for (unsigned i = 0; i < TRIES && result < 0; i++)
        if (read_records(source, &raw, 1, offset) == 1)
            result = top_reader_decode(&raw, owner, entry);
    return result;
}

struct walk {
    const struct top_source *source;
    struct top_damage *damage;
    const struct top_visitor *visitor;
    struct top_entry entry;
    uint64_t owner;
    bool has_unused; /* the ring has records that were never written */
};

static bool walk_chunk(struct walk *w, uint64_t offset, uint64_t n)
{
    struct mk_recorder_record raw[CHUNK];
    uint64_t whole = read_records(w->source, raw, n, offset);
    w->damage->missing += n - whole;
    w->has_unused |= whole < n;
    for (uint64_t i = 0; i < whole; i++) {
        w->has_unused |= __atomic_load_n(&raw[i].version, __ATOMIC_RELAXED) == 0;
        int result = top_reader_decode(&raw[i], w->owner, &w->entry);
        if (result < 0)
            result = decode_again(w->source, offset + i * sizeof *raw, w->owner, &w->entry);
        w->damage->torn += result < 0;
        if (result > 0 && !w->visitor->each(w->visitor->ctx, &w->entry))
            return false;
    }
    return true;
}

static bool walk_ring(struct walk *w, uint64_t offset, uint64_t n, bool is_failure)
{
    const struct top_visitor *v = w->visitor;
    w->entry.is_failure = is_failure;
    w->has_unused = false;
    for (uint64_t at = 0; at < n; at += CHUNK)
        if (!walk_chunk(w, offset + at * sizeof(struct mk_recorder_record), n - at < CHUNK ? n - at : CHUNK))
            return false;
    return !v->ring_end || v->ring_end(v->ctx, !w->has_unused);
}

/* Returns 0 if the owner has exited without releasing the slot. Its process ID tells nothing: another process may have it now,
 * and in another PID namespace, processes have other IDs. */
static uint64_t live_owner(const struct top_source *source, const struct mk_recorder_slot *slot,
                           uint64_t offset)
{
    uint64_t owner = __atomic_load_n(&slot->owner, __ATOMIC_RELAXED);
    bool is_own = owner && owner == source->own_pid;
    return !is_own && source->is_locked && !source->is_locked(source->ctx, offset) ? 0 : owner;
}

/* Returns false at the end of the file, or if the visitor has ended the walk. */
static bool walk_slot(struct walk *w, uint64_t offset, const struct mk_recorder_header *h)
{
    struct mk_recorder_slot slot;
    if (w->source->read(w->source->ctx, &slot, sizeof slot, offset) != (ssize_t)sizeof slot) {
        w->damage->missing += (uint64_t)h->n_requests + h->n_failures;
        return false;
    }
    w->owner = live_owner(w->source, &slot, offset);
    offset += sizeof slot;
    return walk_ring(w, offset, h->n_requests, false) &&
           walk_ring(w, offset + h->n_requests * sizeof(struct mk_recorder_record), h->n_failures, true);
}

void top_reader_each(const struct top_source *source, const struct mk_recorder_header *h,
                     const struct top_visitor *visitor, struct top_damage *damage)
{
    struct walk w = {.source = source, .damage = damage, .visitor = visitor};
    uint64_t size = mk_recorder_slot_size(h->n_requests, h->n_failures);
    for (unsigned i = 0; i < h->n_slots; i++) {
        w.entry.slot = i;
        if (!walk_slot(&w, MK_RECORDER_PAGE + i * size, h))
            return;
    }
}

/* ---- Files ---- */

static ssize_t read_file(void *ctx, void *buf, size_t size, uint64_t offset)
{
    const int *fd = ctx;
    size_t done = 0;
    while (done < size) {
        ssize_t n = pread(*fd, (char *)buf + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return done ? (ssize_t)done : -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

/* A worker locks its slot. A copy of a recording has no locks. */
static bool is_file_locked(void *ctx, uint64_t offset)
{
    const int *fd = ctx;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = 1};
    return fcntl(*fd, F_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

static const char *read_descriptor(int fd, uint64_t own_pid, const struct top_visitor *visitor,
                                   struct top_damage *damage)
{
    struct mk_recorder_header h;
    const struct top_source source = {
        .read = read_file, .is_locked = is_file_locked, .own_pid = own_pid, .ctx = &fd};
    const char *error = top_reader_header(&source, &h);
    if (!error)
        top_reader_each(&source, &h, visitor, damage);
    return error;
}

/* A worker that closed another descriptor of the file would lose the lock of its slot, so it reads the server's. */
const char *top_reader_read(const struct top_recording *from, const struct top_visitor *visitor,
                            struct top_damage *damage, bool *is_missing)
{
    *is_missing = false;
    if (!from->path)
        return read_descriptor(from->fd, (uint64_t)getpid(), visitor, damage);
    int fd = open(from->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *is_missing = fd < 0 && errno == ENOENT;
    if (fd < 0)
        return strerror(errno);
    const char *error = read_descriptor(fd, 0, visitor, damage);
    close(fd);
    return error;
}
