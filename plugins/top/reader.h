/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a recording, which may be in use, incomplete or malicious: nothing in it is trusted. */
#ifndef TOP_RECORDER_READER_H
#define TOP_RECORDER_READER_H

#include <monkey/recording.h>
#include <sys/types.h>

/* A record whose members are valid. Its texts are those of the copy in it. */
struct top_entry {
    struct mk_recorder_record record;
    unsigned slot;
    bool is_failure;     /* in the ring of failed and slow requests */
    uint64_t end_serial; /* position in the order in which requests of the slot ended; 0: in flight */
    bool is_path_cut;
    mk_str text[MK_RECORDER_TEXTS];
};

/* Sets the texts of an entry after it was copied. Returns false if the record is invalid. */
bool top_reader_set_texts(struct top_entry *e);

/* The source of a recording: a file, or memory. */
struct top_source {
    /* Returns the number of bytes read, or a negative errno value. */
    ssize_t (*read)(void *ctx, void *buf, size_t size, uint64_t offset);
    /* Does a process hold the lock of the slot at this offset? NULL: the owner in the slot does. */
    bool (*is_locked)(void *ctx, uint64_t offset);
    uint64_t own_pid; /* the kernel does not report the locks of the process that reads; 0: it holds none */
    void *ctx;
};

struct top_damage {
    uint64_t torn;    /* records that were incomplete */
    uint64_t missing; /* records beyond the end of the file */
};

/* Reads and checks the header. Returns NULL, or the reason of a failure. */
const char *top_reader_header(const struct top_source *source, struct mk_recorder_header *out);
/* Decodes a record. Returns 1; 0 if it is empty; -1 if it is incomplete or invalid. */
int top_reader_decode(const struct mk_recorder_record *raw, uint64_t owner, struct top_entry *out);
/* What a walk over a recording calls. */
struct top_visitor {
    /* For each record, in no particular order within a ring. False ends the walk. */
    bool (*each)(void *ctx, const struct top_entry *entry);
    /* After each ring; NULL: not called. `is_full`: all of its records have been used, so requests are missing that ended
     * before the others of the ring. */
    bool (*ring_end)(void *ctx, bool is_full);
    void *ctx;
};

void top_reader_each(const struct top_source *source, const struct mk_recorder_header *h,
                     const struct top_visitor *visitor, struct top_damage *damage);

/* A recording that can be read again and again. */
struct top_recording {
    const char *path; /* NULL: the descriptor of the server that this process belongs to */
    int fd;
};

/* Reads a recording. Returns NULL, or the reason of a failure. *is_missing: there is no such file. */
const char *top_reader_read(const struct top_recording *from, const struct top_visitor *visitor,
                            struct top_damage *damage, bool *is_missing);

#endif
