/* SPDX-License-Identifier: Apache-2.0 */
/* The file format of the plugin recorder: a header, then one slot for each worker process. A slot consists of
 * a header and two ring buffers of records. All numbers are in host byte order.
 *
 * Each slot has one writer. Readers need no lock: `version` of a record is odd while the record is being
 * written, and differs from `check` at its end if only a part of the record reached the disk. */
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
    MK_RECORDER_PAGE = 4096, /**< size of the file header; slots begin at multiples of this size */
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
    uint32_t n_requests; /**< records in the ring buffer of all requests, per slot */
    uint32_t n_failures; /**< records in the ring buffer of failed and slow requests, per slot */
};

/** The header of a slot. */
struct mk_recorder_slot {
    uint64_t owner;        /**< process ID of the writer; 0: none. Access it with atomic operations */
    uint32_t next_request; /**< index of the record in the first ring buffer that will be overwritten next */
    uint32_t next_failure; /**< the same for the second ring buffer */
    uint64_t unused[6];
};

/** States of a record. */
enum mk_recorder_state {
    MK_RECORDER_EMPTY,
    MK_RECORDER_OPEN,  /**< the request is in flight */
    MK_RECORDER_ENDED, /**< the request has ended */
    MK_RECORDER_LOST   /**< the process ended before the request did */
};

/** The strings of a record, in storage order. */
enum mk_recorder_text {
    MK_RECORDER_HOST,
    MK_RECORDER_PATH,
    MK_RECORDER_ID,
    MK_RECORDER_UPSTREAM,
    MK_RECORDER_ROUTE,
    MK_RECORDER_REASON
};

/** Number of states and number of strings in this version of the format. */
enum { MK_RECORDER_STATES = MK_RECORDER_LOST + 1, MK_RECORDER_TEXTS = MK_RECORDER_REASON + 1 };

/** Maximum lengths of the strings, in bytes. Longer strings are truncated. */
enum {
    MK_RECORDER_HOST_MAX = 64,
    MK_RECORDER_PATH_MAX = 151, /**< readers treat a path of this length as truncated */
    MK_RECORDER_ID_MAX = 64,
    MK_RECORDER_ROUTE_MAX = 48,
    MK_RECORDER_UPSTREAM_MAX = 48,
    MK_RECORDER_REASON_MAX = 32,
    MK_RECORDER_TEXT_SIZE = 408 /**< space for all strings */
};

/** A request. */
struct mk_recorder_record {
    /** Odd: the record is being written; otherwise twice the number of the last change in the slot. Access it
     * with atomic operations. */
    uint64_t version;
    uint64_t began_ms;      /**< when the request head was complete, in milliseconds since 1970 */
    uint64_t duration_us;   /**< from then to the end */
    uint64_t received;      /**< bytes of the request body */
    uint64_t sent;          /**< bytes of the response body */
    uint32_t handler_us;    /**< microseconds from began_ms until the handler was called; 0: not called */
    uint32_t connect_us;    /**< the same, until the last attempt was connected */
    uint32_t first_byte_us; /**< the same, until the first byte of the last attempt */
    uint32_t attempts;
    uint16_t status;
    uint8_t outcome; /**< enum mk_outcome */
    uint8_t state;   /**< enum mk_recorder_state */
    uint8_t http_version;
    uint8_t method;
    uint8_t is_tls;
    uint8_t unused;
    uint8_t len[8]; /**< lengths of the strings, indexed by enum mk_recorder_text */
    struct mk_addr client;
    uint32_t pid;
    char text[MK_RECORDER_TEXT_SIZE];
    uint64_t check; /**< equals `version` if the record is complete */
};

struct mk_worker;
/** Returns the descriptor of the recording that this server writes; -1 if there is none. Call it in
 * worker_start or later. Any thread of the worker may read from the descriptor. Never close it, and never
 * open the file in a worker: closing any descriptor of the file releases the lock of the worker's slot. */
MK_API int mk_worker_recording(const struct mk_worker *worker);

/** The size of a slot in bytes. */
static inline uint64_t mk_recorder_slot_size(uint32_t n_requests, uint32_t n_failures)
{
    uint64_t size = n_requests;
    size += n_failures;
    size = sizeof(struct mk_recorder_slot) + size * sizeof(struct mk_recorder_record);
    return (size + MK_RECORDER_PAGE - 1) / MK_RECORDER_PAGE * MK_RECORDER_PAGE;
}

/** The size of the recording in bytes. */
static inline uint64_t mk_recorder_total_size(const struct mk_recorder_header *h)
{
    return MK_RECORDER_PAGE + h->n_slots * mk_recorder_slot_size(h->n_requests, h->n_failures);
}

#ifdef __cplusplus
}
#endif

#endif
