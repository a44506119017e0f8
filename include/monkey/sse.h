/* SPDX-License-Identifier: Apache-2.0 */
/* Text of server-sent events (text/event-stream), of which browsers make events. */
#ifndef MONKEY_SSE_H
#define MONKEY_SSE_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One event. All of its texts may be absent. */
struct mk_sse_event {
    mk_str name;       /**< the event that is dispatched; absent: "message" */
    mk_str id;         /**< what a client that reconnects sends as Last-Event-ID */
    mk_str data;       /**< may have several lines, UTF-8; absent: browsers dispatch nothing */
    uint32_t retry_ms; /**< after how long a client is to reconnect; 0: as it likes */
};

/**
 * Appends the event. One without all of these is a comment, which keeps the connection alive. 0; -EINVAL for a line
 * end in name or id, or a NUL in id; -ENOMEM when it does not fit: then nothing was appended.
 *
 *     const struct mk_sse_event tick = {.name = MK_STR("tick"), .data = MK_STR("12:00")};
 *     int e = mk_sse_write(&out, &tick);
 */
MK_API int mk_sse_write(struct mk_buf *out, const struct mk_sse_event *e);

#ifdef __cplusplus
}
#endif

#endif
