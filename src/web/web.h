/* SPDX-License-Identifier: Apache-2.0 */
/* The surroundings of the flow of requests: one of these per worker. */
#ifndef MK_WEB_WEB_H
#define MK_WEB_WEB_H

#include <monkey/handler.h>

#include "base/log.h"
#include "files/file_cache.h"
#include "web/access_record.h"
#include "web/spool_quota.h"
#include "web/vhost.h"

struct mk_worker;

/* Where `monkey explain` learns what decided; NULL for the requests of clients. */
struct mk_explain_sink {
    void (*say)(struct mk_explain_sink *e, const char *what, mk_str text);
};

struct mk_web_ctx {
    const struct mk_vhosts *hosts; /* of a connection that says nothing else */
    struct mk_file_cache files;
    struct mk_spool_quota spools;
    const uint64_t *now_ms;                 /* the loop's; `now_ms` of a request is when it came in */
    const struct mk_request_limits *limits; /* where host, location and request have none of their own */
    /* Gets every record, after the hooks of its host. May be NULL. */
    void (*on_record)(const struct mk_access_record *record, void *data);
    void *on_record_data;
    struct mk_explain_sink *explanation;
    struct mk_log *log;
    int64_t gave_up; /* the second of the last message about a search that was given up: a client must not
                        fill the log */
    int64_t reference_logged_at; /* likewise of an error page with a reference */
    int64_t forbidden_logged_at; /* likewise about a file that workers may not read */
    int64_t too_long_logged_at;  /* the second of the last message about content that is too long; likewise */
    bool precise;                /* a plugin needs durations in microseconds */
    struct mk_worker *worker;
};

#endif
