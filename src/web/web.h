/* SPDX-License-Identifier: Apache-2.0 */
/* What the corridor of requests needs to know of the world around: one of these per worker. */
#ifndef MK_WEB_WEB_H
#define MK_WEB_WEB_H

#include <monkey/handler.h>

#include "base/log.h"
#include "web/host.h"
#include "web/record.h"

/* Where `monkey explain` learns what decided; NULL for the requests of clients. */
struct mk_explanation {
    void (*say)(struct mk_explanation *e, const char *what, mk_str text);
};

struct mk_web {
    const struct mk_hosts *hosts;
    struct mk_file_cache files;
    /* Gets every record, after the hooks of its host. May be NULL. */
    void (*on_record)(const struct mk_record *record, void *data);
    void *on_record_data;
    struct mk_explanation *explanation;
    struct mk_log *log;
    bool precise; /* somebody will ask for durations in microseconds */
    void *owner;  /* the struct mk_worker */
};

#endif
