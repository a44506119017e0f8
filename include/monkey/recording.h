/* SPDX-License-Identifier: Apache-2.0 */
/* The format of the recording of the plugin recorder: a header, and a slot per worker process. A slot consists of a
 * header and two rings of records. All members have the byte order of the machine.
 *
 * Each slot has one writer. Readers need no lock: the version of a record is odd while the record is being written,
 * and the copy at its end differs from it if the record was only partly written to the disk. */
#ifndef MONKEY_RECORDING_H
#define MONKEY_RECORDING_H

#include <monkey/addr.h>
#include <monkey/str.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The folder and name of the default file, and the first bytes of the file. */
#define MK_RECORDER_FOLDER "/var/lib/monkey"
#define MK_RECORDER_FILE   MK_RECORDER_FOLDER "/recording"
#define MK_RECORDER_MAGIC  "monkey recorder\n"

/** Version and limits of the format. */
enum {
    MK_RECORDER_VERSION = 2,
    MK_RECORDER_PAGE = 4096, /**< size of the header; slots begin at multiples of it */
    MK_RECORDER_RECORDS_MIN = 16,
    MK_RECORDER_RECORDS_MAX = 1000000,
    MK_RECORDER_SLOTS_MAX = 1024
};

/** The first bytes of the recording. */
struct mk_recorder_header {
    char magic[16]; /**< MK_RECORDER_MAGIC */
    uint32_t version;
    uint32_t record_size;
    uint32_t n_slots;
    uint32_t n_requests; /**< records in the ring of all requests, per slot */
    uint32_t n_failures; /**< records in the ring of failed and slow requests, per slot */
};

/** The header of a slot. */
struct mk_recorder_slot {
    uint64_t owner;        /**< process ID of the writer; 0: none. Processes access it by atomic operations */
    uint32_t next_request; /**< index of the record of the first ring that is overwritten next */
    uint32_t next_failure; /**< the same for the second ring */
    uint64_t unused[6];
};

/** States of a record. */
enum mk_recorder_state {
    MK_RECORDER_EMPTY,
    MK_RECORDER_OPEN,  /**< the request is in flight */
    MK_RECORDER_ENDED, /**< the request has ended */
    MK_RECORDER_LOST   /**< the process ended before the request did */
};

/** The texts of a record, in the order in which they are stored. */
enum mk_recorder_text {
    MK_RECORDER_HOST,
    MK_RECORDER_PATH,
    MK_RECORDER_ID,
    MK_RECORDER_UPSTREAM,
    MK_RECORDER_ROUTE,
    MK_RECORDER_REASON
};

/** Numbers of states and texts in this version of the format. */
enum { MK_RECORDER_STATES = MK_RECORDER_LOST + 1, MK_RECORDER_TEXTS = MK_RECORDER_REASON + 1 };

/** Largest lengths of the texts, in bytes. */
enum {
    MK_RECORDER_HOST_MAX = 64,
    MK_RECORDER_PATH_MAX = 151, /**< a path of this length was longer */
    MK_RECORDER_ID_MAX = 64,
    MK_RECORDER_ROUTE_MAX = 48,
    MK_RECORDER_UPSTREAM_MAX = 48,
    MK_RECORDER_REASON_MAX = 32,
    MK_RECORDER_TEXT_SIZE = 408 /**< space for all texts */
};

/** A request. */
struct mk_recorder_record {
    /** Odd: the record is being written; else twice the number of the last change in the slot. Processes access it by
     * atomic operations. */
    uint64_t version;
    uint64_t began_ms;      /**< time when the head was complete, in milliseconds since 1970 */
    uint64_t duration_us;   /**< from then to the end */
    uint64_t received;      /**< bytes of the request's body */
    uint64_t sent;          /**< bytes of the response's body */
    uint32_t handler_us;    /**< microseconds from the complete head to the handler; 0: not reached */
    uint32_t connect_us;    /**< the same, to the connection of the last attempt */
    uint32_t first_byte_us; /**< the same, to the first byte of the last attempt */
    uint32_t attempts;
    uint16_t status;
    uint8_t outcome; /**< enum mk_outcome */
    uint8_t state;   /**< enum mk_recorder_state */
    uint8_t http_version;
    uint8_t method;
    uint8_t is_tls;
    uint8_t unused;
    uint8_t len[8]; /**< lengths of the texts */
    struct mk_addr client;
    uint32_t pid;
    char text[MK_RECORDER_TEXT_SIZE];
    uint64_t check; /**< equals `version` in a record that is complete */
};

struct mk_worker;
/** Returns the descriptor of the recording to which this worker's server writes, in worker_start or later; -1: there is
 * none. Any thread of the worker may read from it. Never close it, and never open the file in a worker: closing any
 * descriptor of the file releases the lock of the worker's slot. */
MK_API int mk_worker_recording(const struct mk_worker *worker);

/** The size of a slot. */
static inline uint64_t mk_recorder_slot_size(uint32_t n_requests, uint32_t n_failures)
{
    uint64_t size = n_requests;
    size += n_failures;
    size = sizeof(struct mk_recorder_slot) + size * sizeof(struct mk_recorder_record);
    return (size + MK_RECORDER_PAGE - 1) / MK_RECORDER_PAGE * MK_RECORDER_PAGE;
}

/** The size of the recording. */
static inline uint64_t mk_recorder_total_size(const struct mk_recorder_header *h)
{
    return MK_RECORDER_PAGE + h->n_slots * mk_recorder_slot_size(h->n_requests, h->n_failures);
}

#ifdef __cplusplus
}
#endif

#endif
