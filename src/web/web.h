/* SPDX-License-Identifier: Apache-2.0 */
/* Context for request dispatch: one per worker. */
#ifndef MK_WEB_WEB_H
#define MK_WEB_WEB_H

#include <monkey/handler.h>

#include "base/log.h"
#include "files/file_cache.h"
#include "web/access_record.h"
#include "web/random_pool.h"
#include "web/spool_quota.h"
#include "web/vhost.h"

struct mk_worker;
struct mk_condition_memo;

/* Receives the decisions for `monkey explain`; NULL for client requests. */
struct mk_explain_sink {
    void (*say)(struct mk_explain_sink *e, const char *what, mk_str text);
};

struct mk_web_ctx {
    const struct mk_vhosts *hosts; /* default virtual hosts, for connections without their own virtual
                                      hosts */
    struct mk_file_cache files;
    struct mk_spool_quota spools;
    struct mk_random_pool random;           /* for request IDs */
    const uint64_t *now_ms;                 /* clock of the loop; `now_ms` of a request is its time of
                                             * arrival */
    const struct mk_request_limits *limits; /* defaults for hosts, locations and requests without their own
                                             * limits */
    /* Receives every access-log entry, after the hooks of its host. May be NULL. */
    void (*on_record)(const struct mk_access_record *record, void *data);
    void *on_record_data;
    struct mk_explain_sink *explanation;
    void (*on_handle)(struct mk_request *request,
                      void *data); /* see struct mk_request_observer; may be NULL */
    void *on_handle_data;
    bool is_watched; /* `explanation` or `on_handle` is set */
    struct mk_log *log;
    int64_t gave_up; /* second of the last log message about a regex limit: clients must not flood the log */
    int64_t reference_logged_at;          /* likewise for error pages with a reference */
    int64_t forbidden_logged_at;          /* likewise for files without read permission */
    int64_t too_long_logged_at;           /* likewise for oversized bodies */
    bool precise;                         /* a plugin needs durations in microseconds */
    struct mk_condition_memo *conditions; /* NULL: no condition has needed it yet */
    struct mk_worker *worker;
};

#endif
