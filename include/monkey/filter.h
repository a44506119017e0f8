/* SPDX-License-Identifier: Apache-2.0 */
/* Changing the content of responses while they are sent, for on_response. */
#ifndef MONKEY_FILTER_H
#define MONKEY_FILTER_H

#include <monkey/response.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The content that a filter changes: that of the response, or what the filter before it made of it. */
struct mk_filter_next;

/** As `pull` of a source (monkey/body_source.h): bytes, 0 at the end, -EAGAIN when there is nothing yet (return
 * -EAGAIN too: the source resumes the request), or another error, to be passed on. */
MK_API ssize_t mk_filter_next_read(struct mk_filter_next *inner, char *room, size_t cap);

/**
 * Transforms the content of a response while it is sent: the server pulls from the filter, the filter from
 * the previous content. Later filters see the output of earlier ones.
 */
struct mk_filter_ops {
    /** As `pull` of a source. May return fewer bytes than possible; 0 is the end. */
    ssize_t (*pull)(void *ctx, struct mk_filter_next *inner, char *room, size_t cap);
    /** The response ended, however. Called once. May be NULL. */
    void (*close)(void *ctx);
};

/**
 * Adds a filter. Call it from on_response, only when the client will see content
 * (mk_response_will_send_body()), or would see it with GET instead of HEAD: a HEAD has the fields of a
 * GET, but the server does not pull. `length` is the length of the output, or MK_LENGTH_UNKNOWN. The caller
 * sets the fields that describe the content (Content-Encoding, ETag, Accept-Ranges). The server will call
 * ops->close(ctx), even when this fails. 0, -EINVAL for a raw source or a tunnel, -ENOMEM or -EALREADY.
 */
MK_API int mk_response_add_filter(struct mk_response *r, const struct mk_filter_ops *ops, void *ctx,
                                  int64_t length);

#ifdef __cplusplus
}
#endif

#endif
