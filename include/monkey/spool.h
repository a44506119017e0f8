/* SPDX-License-Identifier: Apache-2.0 */
/* Spools buffer bodies between a slow client and a consumer or producer that cannot wait for the client. They
 * hold complete request bodies, and responses that arrive faster than the client reads them. */
#ifndef MONKEY_SPOOL_H
#define MONKEY_SPOOL_H

#include <monkey/str.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_config;
struct mk_request;

/**
 * A complete request body. Small bodies stay in memory (up to 64 KB, or 4 KB if the client address has used
 * up its share of memory), and larger ones go to an unlinked file in `SpoolFolder`. A separate thread writes
 * that file, and the server reads nothing from the client in the meantime: a slow disk therefore slows down
 * the client, not the worker.
 */
struct mk_spool;

/** Enables spooling for this configuration, which gives its workers access to `SpoolFolder`. Call it in
 * load(), in host(), or in bind() of a route with mk_conf_ctx_config(). Without this call, a body that does
 * not fit in memory fails with -EOPNOTSUPP. After a call in bind(), the server also warns if the virtual
 * host's `MaxBodySize` exceeds the half of `SpoolMax` that one client may use. */
MK_API void mk_config_enable_body_spool(struct mk_config *config);
/** The absolute path of `SpoolFolder`, NUL-terminated. Absent, with the error reported, if out of memory. */
MK_API mk_str mk_config_spool_folder(const struct mk_config *config);
/** `SpoolMax` in bytes; 0: unlimited. */
MK_API uint64_t mk_config_spool_max(const struct mk_config *config);

/**
 * Receives the request body. Call it from the handler; if it returns -EAGAIN, return MK_WAIT from the
 * handler. Returns 0 when the body is complete; *out then lives as long as the request, or until
 * mk_spool_free().
 *
 * `max` limits the body in addition to `MaxBodySize`; 0: no additional limit. Errors: -EMSGSIZE: longer than
 * `max`, than `MaxBodySize`, or than half of `SpoolMax`, the share that one client may use (logged);
 * -EBADMSG: malformed; -ECONNRESET: the client disconnected before the end; -ENOSPC: the disk (or its quota,
 * or a file size limit) is full; -EDQUOT: `SpoolMax`, or the half of it that one client address may use, is
 * exhausted; -EOPNOTSUPP: the body does not fit in memory, and spooling to files is not enabled (logged);
 * -ENOMEM, and errors of open(2) and pwrite(2). Errors are permanent. Disk errors are logged.
 * mk_spool_status() maps each error to a status.
 *
 *     struct mk_spool *content;
 *     int e = mk_spool_request(request, 0, &content);
 *     if (e == -EAGAIN)
 *         return MK_WAIT;
 *     if (e < 0) {
 *         mk_response_set_status(response, mk_spool_status(e));
 *         return MK_ERROR;
 *     }
 *     start_with(mk_spool_length(content), mk_spool_fd(content));
 */
MK_API int mk_spool_request(struct mk_request *request, uint64_t max, struct mk_spool **out) MK_API_MUST_USE;

/** The length of the body in bytes. */
MK_API uint64_t mk_spool_length(const struct mk_spool *spool);
/** Copies up to `cap` bytes from position `offset`. Returns the number of bytes, 0 beyond the end, or a
 * negative errno value. May block on disk I/O if the body is in a file. */
MK_API ssize_t mk_spool_read(const struct mk_spool *spool, char *buf, size_t cap,
                             uint64_t offset) MK_API_MUST_USE;
/** Returns a descriptor of the body, positioned at its start. For a body in memory, it refers to a
 * memory file. The spool owns and closes it; a subprocess that was started with it keeps its own copy.
 * Returns a negative errno value if memory or descriptors are exhausted. */
MK_API int mk_spool_fd(struct mk_spool *spool) MK_API_MUST_USE;
/** Frees memory and disk space before the request ends. Do not use `spool` afterwards. */
MK_API void mk_spool_free(struct mk_spool *spool);

/** The response status for a body that could not be spooled: 400, 413, 500, 503 or 507. With 503,
 * send Retry-After, because space is freed when other requests end. */
MK_API unsigned mk_spool_status(int error);

/**
 * A first-in, first-out queue for a response body that the client does not read fast enough. It lets the
 * producer, such as a connection to another server, finish and serve other requests. Up to 64 KB stay in
 * memory (16 KB if the client address has used up its share of memory), and the rest goes to an unlinked file
 * in `SpoolFolder`, which a separate thread writes. The queue belongs to the worker, and must be freed before
 * the request ends.
 *
 * All responses together may use half of `SpoolMax`, and those of one client address a quarter.
 */
struct mk_spool_queue;

/** Creates an empty queue. on_writable(ctx) is called when an operation that returned -EAGAIN can continue,
 * but never from inside these functions. Returns NULL if out of memory. */
MK_API struct mk_spool_queue *mk_spool_queue_new(struct mk_request *request, void (*on_writable)(void *ctx),
                                                 void *ctx) MK_API_MUST_USE;
/** Returns free space in *buf: write to it, and then report the number of bytes with mk_spool_queue_add().
 * Returns 0; -EAGAIN if a thread is writing to the file (on_writable() follows); -EDQUOT if the disk share is
 * exhausted: read from the queue first; or the error that occurred while writing the file. That error is
 * logged and permanent, but data added earlier can still be read. */
MK_API int mk_spool_queue_reserve(struct mk_spool_queue *queue, char **buf, size_t *cap) MK_API_MUST_USE;
MK_API void mk_spool_queue_add(struct mk_spool_queue *queue, size_t n);
/** Removes up to `cap` bytes from the queue. Returns the number of bytes; 0 if the queue is empty;
 * -EAGAIN if the next bytes are being written to the file (on_writable() follows); or a negative errno value
 * if they are lost. */
MK_API ssize_t mk_spool_queue_read(struct mk_spool_queue *queue, char *buf, size_t cap) MK_API_MUST_USE;
/** Frees the queue. NULL is allowed. */
MK_API void mk_spool_queue_free(struct mk_spool_queue *queue);

#ifdef __cplusplus
}
#endif

#endif
