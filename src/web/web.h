/* SPDX-License-Identifier: Apache-2.0 */
/* What the corridor of requests needs to know of the world around: one of these per worker. */
#ifndef MK_WEB_WEB_H
#define MK_WEB_WEB_H

#include <monkey/handler.h>

#include "base/log.h"
#include "web/host.h"
#include "web/record.h"

/* Functions called at fixed points of every request, in order. Any may be NULL. */
struct mk_hook {
    const char *name;
    void *data;
    /* The request is known, no handler has seen it. NEXT goes on; DONE: the response is complete; WAIT,
     * REFUSE. */
    enum mk_verdict (*on_request)(struct mk_request *request, struct mk_response *response, void *data);
    /* The response is complete but for what filters will do to it; fields may be added. */
    void (*on_response)(struct mk_request *request, struct mk_response *response, void *data);
    /* The request is over, however it ended. */
    void (*on_done)(const struct mk_record *record, void *data);
};

struct mk_web {
    const struct mk_hosts *hosts;
    struct mk_file_cache files;
    const struct mk_hook *hooks;
    size_t n_hooks;
    struct mk_log *log;
    /* Takes what mk_request_log was told; NULL: mk_request_log_plain does. The message has no control
     * characters. */
    void (*log_request)(struct mk_request *request, enum mk_log_level level, mk_str message);
    bool precise; /* somebody will ask for durations in microseconds */
    void *owner;  /* the struct mk_worker */
};

#endif
