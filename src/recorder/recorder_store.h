/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the recording, as the server sees it: the master creates and maps it, and workers claim its slots. */
#ifndef MK_RECORDER_RECORDER_STORE_H
#define MK_RECORDER_RECORDER_STORE_H

#include <monkey/plugin.h>
#include <monkey/recording.h>

struct mk_recorder_store {
    int fd; /* -1: closed */
    void *map;
    struct mk_recorder_header header;
    const char *replaced; /* the path, if the file has replaced one of another size; NULL: it has not */
    uint64_t n_before;    /* what the file had recorded when it was opened */
    pid_t opener;
};

/* Opens or creates the file at `path`, which must live as long as the store. A recording of another format or size becomes PATH.1, but a PATH.1 of the wanted size
 * is used again. Returns NULL, or the reason of a failure. */
const char *mk_recorder_store_open(struct mk_recorder_store *s, const char *path,
                                   const struct mk_recorder_header *wanted);
/* If the file has replaced another one, and no request was recorded, the other one gets its name back. */
void mk_recorder_store_close(struct mk_recorder_store *s);
/* Is the file still as large as the mapping? Otherwise an access to the mapping ends the process. */
bool mk_recorder_store_is_whole(const struct mk_recorder_store *s);
struct mk_recorder_slot *mk_recorder_store_slot(const struct mk_recorder_store *s, unsigned i);
/* Claims a slot for this process: one whose owner has exited, else one without an owner. NULL: none. */
struct mk_recorder_slot *mk_recorder_store_claim(const struct mk_recorder_store *s);

static inline struct mk_recorder_record *mk_recorder_slot_records(struct mk_recorder_slot *slot)
{
    return (struct mk_recorder_record *)(slot + 1);
}

#endif
