/* SPDX-License-Identifier: Apache-2.0 */
/* Body sources: callbacks that produce a body while it is sent. */
#ifndef MONKEY_BODY_SOURCE_H
#define MONKEY_BODY_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Callbacks that produce a body while it is sent. The server requests the next piece only when the client can
 * receive it, which provides back-pressure.
 */
struct mk_body_source_ops {
    /**
     * Writes at most `cap` bytes (at least 1) to `buf`.
     *
     * Returns the number of bytes written, or 0 at the end of the body. Returns -EAGAIN if no data is
     * available yet; the source then calls mk_request_resume() when it has data (input of the same request
     * resumes it automatically). Any other negative errno value aborts the response. If none of the response
     * was sent yet, the client receives an error page with the status of mk_response_fail(), or 500.
     * Otherwise the server closes the connection, so that the client can detect the incomplete response. The
     * head is sent with the first bytes of the body, or when the source returns -EAGAIN.
     *
     * Runs in the worker's event loop and must not block.
     */
    ssize_t (*read)(void *ctx, char *buf, size_t cap);
    /** Frees the resources of the source when the response has ended or its client has disconnected
     * (mk_response_was_sent() tells which). Called once. May be NULL. */
    void (*close)(void *ctx);
    uint64_t reserved[2]; /**< must be zero */
};

#ifdef __cplusplus
}
#endif

#endif
