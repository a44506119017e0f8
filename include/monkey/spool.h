/* SPDX-License-Identifier: Apache-2.0 */
/* Content between a slow client and something that cannot wait for it: that of a request as a whole, and that
 * of a response which comes faster than its client takes it. */
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
 * The content of a request, received as a whole: in memory as long as it is small (64 KB; 4 KB when the same
 * client address has more such content under way), then in an unlinked file in `SpoolFolder`. A thread writes
 * that file, and nothing is read from the client meanwhile: a slow disk slows the client down, not the
 * worker.
 */
struct mk_spool;

/** In load(), in host(), or in bind() of a route with mk_conf_ctx_config(): this configuration spools content,
 * so its workers get access to `SpoolFolder`. Without this, content that does not fit in memory is answered with
 * -EOPNOTSUPP. In bind() it also has `MaxBodySize` of the host compared with `SpoolMax`. */
MK_API void mk_config_enable_body_spool(struct mk_config *config);
/** `SpoolFolder`, absolute and with a NUL behind it; absent: out of memory, which is reported. */
MK_API mk_str mk_config_spool_folder(const struct mk_config *config);
/** `SpoolMax` in bytes; 0: unlimited. */
MK_API uint64_t mk_config_spool_max(const struct mk_config *config);

/**
 * Receives the content of the request. Call it from the handler, as often as it answers -EAGAIN: return
 * MK_WAIT then. 0: all of it is here, and *out lives as long as the request or until mk_spool_free().
 *
 * `max` limits the content in addition to `MaxBodySize`; 0: no further limit. Errors: -EFBIG: longer than
 * `max`, or than the half of `SpoolMax` that one client may use (that is logged); -EMSGSIZE: longer than `MaxBodySize`; -EBADMSG: malformed; -ECONNRESET: the client ended in the
 * middle of it; -ENOSPC: the disk (or its quota, or a limit on file sizes) is full; -EDQUOT: `SpoolMax`, or
 * the half of it that one client address may use, is full; -ENOMEM, and what open(2) or pwrite(2) report. An
 * error stays. Those of the disk are logged. mk_spool_status() has the status for each.
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

/** Bytes of content. */
MK_API uint64_t mk_spool_length(const struct mk_spool *s);
/** Copies up to `cap` bytes from position `at`: how many, 0 behind the end, or a negated errno value. May
 * wait for a disk if the content is in a file. */
MK_API ssize_t mk_spool_read(const struct mk_spool *s, char *room, size_t cap, uint64_t at);
/** A descriptor of the content, positioned at its beginning; of a file in memory if there is none on disk. It
 * stays the spool's, and closes with it: a program that was started with it keeps its own. A negated errno
 * value: no memory, or no descriptor. */
MK_API int mk_spool_fd(struct mk_spool *s);
/** Gives memory and disk space back before the request ends. `s` may not be used any more. */
MK_API void mk_spool_free(struct mk_spool *s);

/** The status that a request deserves whose content could not be spooled: 400, 411, 413, 500, 503 or 507. With
 * 503, send Retry-After: the spool has room again when others have been served. */
MK_API unsigned mk_spool_status(int error);

/**
 * Content of a response that its client does not take yet, first in, first out: the producer, such as a
 * connection to another server, can end and serve others. Up to 64 KB are in memory (16 KB when the same
 * client address has more such content), the rest in an unlinked file in `SpoolFolder`, which a thread writes.
 * Belongs to the worker; must be freed before the request ends.
 *
 * All responses together may use half of `SpoolMax`, and those of one client address a quarter.
 */
struct mk_spool_queue;

/** An empty queue. on_room(ctx) is called when mk_spool_queue_room() has answered -EAGAIN and can go on, never
 * from inside these functions. NULL: out of memory. */
MK_API struct mk_spool_queue *mk_spool_queue_new(struct mk_request *request, void (*on_room)(void *ctx),
                                                 void *ctx) MK_API_MUST_USE;
/** Room for more: write to it, and say with mk_spool_queue_add() how much that was. 0; -EAGAIN: a thread writes,
 * and on_room() will be called; -EDQUOT: the share of the disk is used up, so read first; or why the file could
 * not be written, which has been logged and stays: what was added can still be read. */
MK_API int mk_spool_queue_room(struct mk_spool_queue *q, char **room, size_t *cap) MK_API_MUST_USE;
MK_API void mk_spool_queue_add(struct mk_spool_queue *q, size_t n);
/** Takes up to `cap` bytes out: how many; 0: it is empty; -EAGAIN: the next ones are being written to the file,
 * and on_room() will be called; or a negated errno value: they are lost. */
MK_API ssize_t mk_spool_queue_read(struct mk_spool_queue *q, char *room, size_t cap);
/** NULL is fine. */
MK_API void mk_spool_queue_free(struct mk_spool_queue *q);

#ifdef __cplusplus
}
#endif

#endif
