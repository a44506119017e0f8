/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker.h"

DUDA_TOPIC(changed, "changes");

/* Runs after each handler, and tells all open pages about changes by users. */
int announce(struct duda_ctx *d)
{
    if (duda_identity(d) && !mk_str_eq(duda_method(d), MK_STR("GET")) && duda_response_status(d) < 400)
        (void)duda_topic_publish(d, &changed, duda_path(d));
    return 0;
}

static int updates(struct duda_ctx *d)
{
    mk_str path;
    int e = duda_topic_subscribe(d, &changed);
    e = e ? e : duda_sse_send(d, NULL); /* opens the stream with a comment */
    size_t mark = duda_arena_mark(d);
    while (!e && !(e = duda_topic_receive(d, MK_FOREVER, &path))) {
        e = duda_sse_send(d, &(struct mk_sse_event){.data = path});
        duda_arena_rewind(d, mark);
    }
    return e;
}

DUDA_ROUTES(live, DUDA_GET("/live", updates, "Sends the paths of changes as events.",
                           .response_types = "text/event-stream"));
