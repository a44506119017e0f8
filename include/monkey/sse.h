/* SPDX-License-Identifier: Apache-2.0 */
/* The text format of server-sent events (text/event-stream). */
#ifndef MONKEY_SSE_H
#define MONKEY_SSE_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An event. Any of its strings may be absent. */
struct mk_sse_event {
    mk_str name;       /**< type of the event that browsers dispatch; absent: "message" */
    mk_str id;         /**< ID that a reconnecting client sends as Last-Event-ID */
    mk_str data;       /**< UTF-8, may have several lines; absent: browsers dispatch no event */
    uint32_t retry_ms; /**< reconnection delay for clients; 0: the client decides */
};

/**
 * Appends an event. An event with no members set is a comment, which keeps the connection alive. Returns 0;
 * -EINVAL if the name or ID contains a line break, or the ID a NUL; or -ENOMEM if the event does not fit. On
 * error, nothing is appended.
 *
 *     const struct mk_sse_event tick = {.name = MK_STR("tick"), .data = MK_STR("12:00")};
 *     int e = mk_sse_write(&out, &tick);
 */
MK_API int mk_sse_write_sized(struct mk_buf *out, const struct mk_sse_event *event, size_t event_size);
static inline int mk_sse_write(struct mk_buf *out, const struct mk_sse_event *event)
{
    return mk_sse_write_sized(out, event, sizeof *event);
}

#ifdef __cplusplus
}
#endif

#endif
