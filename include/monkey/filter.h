/* SPDX-License-Identifier: Apache-2.0 */
/* Filters: callbacks that change response bodies while they are sent. For on_response. */
#ifndef MONKEY_FILTER_H
#define MONKEY_FILTER_H

#include <monkey/response.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The input of a filter: the response body, or the output of the previous filter. */
struct mk_filter_next;

/** Reads input. Returns the same values as `read` in monkey/body_source.h: a number of bytes, 0 at the end,
 * -EAGAIN if no data is available yet (then return -EAGAIN as well: the source resumes the request), or
 * another error, which you pass on. */
MK_API ssize_t mk_filter_next_read(struct mk_filter_next *next, char *buf, size_t cap) MK_API_MUST_USE;

/**
 * Callbacks that transform a response body while it is sent. The server pulls from the last filter, and each
 * filter reads from the one before it. Later filters therefore see the output of earlier ones.
 */
struct mk_filter_ops {
    /** Like `read` of a body source. May return fewer bytes than fit; 0 means the end. */
    ssize_t (*read)(void *ctx, struct mk_filter_next *next, char *buf, size_t cap);
    /** Called once when the response has ended, successfully or not. May be NULL. */
    void (*close)(void *ctx);
    uint64_t reserved[2]; /**< must be zero */
};

/**
 * Adds a filter; `ops` must live as long as the request. Call the function from on_response, and only if the
 * client receives a body (mk_response_will_send_body()) or would receive one with GET instead of HEAD: the
 * response to HEAD has the headers of a GET, but the server does not read from the filter. `length` is the
 * length of the output, or MK_LENGTH_UNKNOWN. You set the headers that describe the body (Content-Encoding,
 * ETag, Accept-Ranges). The server calls ops->close(ctx) even if this function fails. Returns 0; -EINVAL for
 * a raw source or a tunnel; -ENOMEM; or -EALREADY.
 */
MK_API int mk_response_add_filter(struct mk_response *response, const struct mk_filter_ops *ops, void *ctx,
                                  int64_t length);

#ifdef __cplusplus
}
#endif

#endif
