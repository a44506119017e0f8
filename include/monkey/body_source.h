/* SPDX-License-Identifier: Apache-2.0 */
/* Content that is made while it is sent. */
#ifndef MONKEY_BODY_SOURCE_H
#define MONKEY_BODY_SOURCE_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Content that is made while it is sent: the server asks for the next piece whenever the client has room for
 * it, and never otherwise. That is all there is to back-pressure.
 */
struct mk_body_source_ops {
    /**
     * Writes at most `cap` bytes (at least 1) to `room`.
     *
     * Answers how many it wrote; 0 at the end of the content; -EAGAIN when there is nothing yet: the source
     * then calls mk_request_resume() once there is (input of the same request resumes by itself). Any other
     * negative errno value gives the response up: as long as nothing of it was sent, the client gets an error
     * page in its place, with the status of mk_response_fail() or 500; else the connection is closed so that
     * it sees that the response is incomplete. The head is sent with the first content, or when the source
     * answers -EAGAIN.
     *
     * Called in the worker's loop; must not block.
     */
    ssize_t (*pull)(void *ctx, char *room, size_t cap);
    /** The response ended, or its client went away (mk_response_was_sent() tells which): give back what the
     * source holds. Called once. May be NULL. */
    void (*close)(void *ctx);
};

#ifdef __cplusplus
}
#endif

#endif
