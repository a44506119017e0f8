/* SPDX-License-Identifier: Apache-2.0 */
/* Changing the content of responses while they are sent, for on_response. */
#ifndef MONKEY_FILTER_H
#define MONKEY_FILTER_H

#include <monkey/response.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The content that a filter changes, whatever it comes from. */
struct mk_upstream;

/** As `pull` of a source (monkey/source.h): bytes, 0 at the end, -EAGAIN when there is nothing yet (answer
 * -EAGAIN in turn: whoever makes the content resumes the request), or another error, to be handed on. */
MK_API ssize_t mk_upstream_pull(struct mk_upstream *up, char *room, size_t cap);

/**
 * Changes the content of a response while it is sent: the server pulls from the filter, the filter from what
 * was the content before. Filters added later see what those added earlier made.
 */
struct mk_filter_ops {
    /** As `pull` of a source. May answer less than it could; 0 is the end. */
    ssize_t (*pull)(void *ctx, struct mk_upstream *up, char *room, size_t cap);
    /** The response ended, however. Called once. May be NULL. */
    void (*close)(void *ctx);
};

/**
 * Puts a filter before the content. Call it from on_response, only when there is content that the client will
 * see (mk_response_will_send_content()), or would see had it not asked with HEAD: then nobody pulls, but the
 * fields are those of a GET. `length` is what will come out, or MK_LENGTH_UNKNOWN. Fields that
 * describe the content (Content-Encoding, ETag, Accept-Ranges) are the filter's to set. From here on
 * ops->close(ctx) will be called, also when this fails. 0, -EINVAL for a raw source or a tunnel, -ENOMEM or
 * -EALREADY.
 */
MK_API int mk_response_add_filter(struct mk_response *r, const struct mk_filter_ops *ops, void *ctx,
                                  int64_t length);

#ifdef __cplusplus
}
#endif

#endif
