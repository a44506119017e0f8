/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of a request context, opaque in duda/service.h. */
#ifndef DUDA_SERVICE_DUDA_CTX_H
#define DUDA_SERVICE_DUDA_CTX_H

#include <duda.h>

#include "fiber/fiber.h"
#include "service/subscriber_counts.h"

/* Marks rarely called functions, to keep them out of the hot path of every request. */
#define DUDA_COLD __attribute__((cold, noinline))

enum { DUDA_ROUTE_CELLS = 64 };

/* State shared by all handlers of a worker. */
struct duda_worker_ctx {
    struct mk_worker *worker;
    const struct duda_symbolizer_config *sources;
    struct duda_session_config *session_config;
    const mk_str *scopes; /* scopes of all services of the configuration */
    size_t n_scopes;
    const struct duda_session_store *store;        /* default of all services; NULL: that of [SESSIONS] */
    struct duda_service_session_store *own_stores; /* stores of services that have their own */
    struct duda_stack_pool *stacks[9];             /* pools by size: 32 KB, 64 KB, ...; created on demand */
    struct duda_crash_table *crash_table;
    struct duda_crash_slot *crash_slot;
    struct mk_timer dead_worker_timer; /* checks for draining workers with the same number that have died */
    struct duda_stall_detector *stall_detector;
    struct mk_buf spare;                    /* output buffer for the next handler */
    struct duda_ctx *volatile runs;         /* context of the handler that runs now; NULL: none */
    struct duda_topic_table *topics;        /* NULL: none yet */
    uint64_t *n_published;                  /* counter of published messages */
    const struct duda_topic_relay *relay;   /* NULL: topics are local to this machine */
    const struct duda_topic_log *topic_log; /* kept messages of this machine */
    struct duda_subscriber_counts subscriber_counts;
    bool has_uncounted_subscribers;          /* a warning was logged */
    struct duda_announced_topics *announced; /* topics whose subscribers other machines count */
    struct duda_ctx *announcer;              /* the task that announces them; NULL: none */
    struct mk_timer topic_timer;             /* runs if WebSockets must not miss kept messages */
    struct duda_lock_table *locks;           /* NULL: none yet */
    struct duda_symbolizer *symbolizer;      /* symbolizer of the current crash report; NULL: none */
    struct duda_websocket_profile *profiles; /* profiles of open WebSockets */
    /* Handlers that no request event resumes, because the request is a tunnel or the client's buffer is full.
     * They resume at the end of the loop iteration. */
    struct duda_ctx *woken, *due;
    struct mk_deferred *deferred;
    void (*resume_handler)(struct duda_ctx *d); /* runs one of these handlers now, if allowed */
    struct duda_chunk *chunks; /* memory of finished handlers, cached for reuse: see memory.c */
    size_t n_chunks;
    struct duda_block *blocks;
    size_t n_blocks;
    struct duda_terminated *terminated, **last_terminated;
    size_t n_terminated;
    const struct duda_crash_policy *rules; /* crash limits */
    int64_t out_of_memory_logged_at;       /* time of the last out-of-memory message */
    struct mk_timer memory_timer;          /* checks whether the memory limit is still reached */
    bool has_requested_replacement;
    bool records_traces;                 /* see mk_worker_records_traces() */
    struct duda_ctx *drain_listeners;    /* event streams, and handlers that called duda_end_on_drain() */
    struct duda_after_task *after_tasks; /* tasks that wait for the end of a request, or run after it */
    uint32_t n_after_tasks, after_tasks_max;
    struct duda_start_tasks *start_tasks;  /* services whose start tasks have not ended */
    void (*count_task)(int change);        /* counts these tasks for `monkey test`; NULL: not in a test */
    struct mk_timer sse_timer;             /* sends keep-alive comments in idle event streams */
    uint64_t sse_timer_at;                 /* when the timer is due; 0: it does not run */
    uint32_t sse_keep_alive_ms;            /* default interval of all streams; 0: no comments */
    struct duda_component *components;     /* components that are not ready */
    struct duda_metrics_cache *metrics;    /* NULL: none yet */
    bool is_draining;                      /* the worker is draining, and so are its event streams */
    const struct duda_service_ref *starts; /* service whose DUDA_START() functions run now; NULL: none */
    struct duda_route_cells {
        uint32_t series;             /* series of a route; 0: this entry is empty */
        uint64_t *cells;             /* counters of this worker */
    } route_cells[DUDA_ROUTE_CELLS]; /* cache, indexed by series */
};

/* The properties of a service that its handlers need. */
struct duda_service_ref {
    const void *settings;                         /* NULL: no configuration section */
    mk_str scope;                                 /* namespace of its state: see duda/scope.h */
    const struct duda_share *share;               /* NULL: no shared state */
    const struct duda_metric_tables *metrics;     /* NULL: the service has no metrics */
    const struct duda_translations *translations; /* NULL: the service has none */
    const struct service_entry *entry;
};

struct duda_crash_table;
struct duda_session_config;
struct duda_after_task;
struct duda_announced_topics;
struct duda_assets;
struct duda_block;
struct duda_catalog;
struct duda_chunk;
struct duda_component;
struct duda_lock_waiter;
struct duda_metric_tables;
struct duda_metrics_cache;
struct duda_public_urls;
struct duda_stall_detector;
struct duda_start_tasks;
struct duda_symbolizer;
struct duda_topic_log;
struct duda_topic_receiver;
struct duda_translations;
struct duda_middleware;
struct duda_websocket_profile;
struct service_entry;
struct duda_service_session_store;
struct duda_crash_slot;
struct duda_crash_policy;
struct duda_terminated;
struct duda_cleanup;
struct duda_symbolizer_config;

struct duda_route_entry;

/* The reason why a function returned an error. */
struct duda_reason {
    int error;
    char text[DUDA_REASON_MAX + 1];
};

/* Data that duda_attach() has attached. */
struct duda_attachment;

/* An error whose description the client may see: see duda_error(). */
struct duda_client_error {
    unsigned status;
    char detail[1024];
    struct duda_validation_errors validation;
};

/* State that most handlers do not need. */
struct duda_extras {
    struct duda_client_error *client_error; /* NULL: none */
    struct duda_reason *reason;             /* NULL: no function has failed */
    struct duda_attachment *attachments;    /* NULL: none */
    const struct duda_middleware *errors; /* error handlers that the fiber runs, in call order; NULL: it runs
                                                 * the handler of the route */
    unsigned error_status;                /* status of the error that the error handlers respond to */
    struct duda_validation_errors *form_errors; /* errors of the last form; NULL: no form was invalid */
    const struct duda_catalog *language;        /* NULL: not chosen yet */
};

struct duda_param_value {
    mk_str name, value;
};

/* What a suspended handler waits for: duda_wake() always resumes it. */
enum duda_suspend_reason {
    DUDA_SUSPEND_FOR_WAKE,
    DUDA_SUSPEND_FOR_INPUT,
    DUDA_SUSPEND_FOR_OUTPUT,
    DUDA_SUSPEND_NONE, /* the handler runs */
};

/* The output state of a handler, which only advances. */
enum duda_output {
    DUDA_OUTPUT_NONE,
    DUDA_OUTPUT_BUFFERED, /* the whole body is in `out` */
    DUDA_OUTPUT_STREAMED, /* the headers are sent, or about to be */
    DUDA_OUTPUT_TUNNEL,   /* no body: the connection was upgraded (duda/websocket.h), or there is no client */
};

/* Allocated in the memory of the request, which outlives the handler of a tunnel. */
struct duda_ctx_ref {
    struct duda_ctx *d; /* NULL: the handler has ended */
};

struct duda_ctx {
    struct mk_request *request;   /* NULL: a background task (duda/task.h), or the handler was terminated */
    struct mk_response *response; /* NULL if `request` is NULL */
    struct duda_worker_ctx *worker_ctx;
    const struct duda_route_entry *route_entry;
    const struct duda_service_ref *owner; /* the service; NULL: a package */
    struct duda_fiber *fiber;             /* NULL: the handler has returned */
    mk_str path;                          /* path below the mount point */
    mk_str id;
    const struct duda_templates *templates; /* NULL: the service has no templates */
    const struct duda_assets *assets;       /* NULL: the service has no DUDA_ASSETS() */

    enum duda_output output;
    uint8_t conditional; /* MK_CONDITIONAL_... flags for the complete response; 0: unconditional */
    struct mk_buf out;   /* response bytes not yet sent */
    size_t out_at;       /* number of bytes of `out` already sent */

    enum duda_suspend_reason waits_for;
    int cancel_error; /* 0, or the error that every wait returns from now on: see duda_suspend_cancel(). Not
                * in the request, because handlers without a request can be cancelled, too */
    int result;       /* result of the handler */
    const struct duda_route *result_route; /* origin of the result: the handler, or a middleware before it */
    const struct duda_route *middleware;   /* the middleware or error handler that runs now or ran last */
    int session_error;                     /* error that prevented a session access; 0: none */
    int form_error; /* result of duda_form_load() that duda_form() or duda_upload() could not return; 0: none */
    struct duda_extras *extras; /* NULL: none */
    struct mk_span *span;       /* the innermost open span; NULL: the trace is not recorded */
    unsigned n_refused_waits;
    uint8_t n_middleware;  /* number of entries of route_entry->before that were called; n_before + 1: the
                           * handler was called, too */
    bool woken;            /* since it was resumed last */
    bool is_event_stream;  /* sends server-sent events */
    bool sse_was_active;   /* the event stream has sent an event since its last check */
    bool sse_has_retry;    /* the service has told the client when to reconnect */
    bool ends_on_drain;    /* see duda_end_on_drain() */
    bool is_refused;       /* the response is an error that explains why the handler refused the request */
    bool is_queued;        /* the handler is in the list of woken handlers */
    bool has_lock_cleanup; /* a cleanup that releases its locks is registered */

    struct duda_ctx_ref *ctx_ref;

    uint64_t began_us;
    uint64_t sse_check_at;      /* time of the next check whether the event stream is silent */
    uint32_t sse_keep_alive_ms; /* interval of this event stream; 0: that of the worker */
    struct mk_timer deadline;
    struct duda_ctx *next_woken;
    struct duda_ctx *next_drain_listener, **drain_listener_link; /* NULL: not in the list */
    struct duda_wait *drainable_wait;                            /* the wait that a drain ends; NULL: none */
    void (*on_task_end)(void *ctx, int result); /* called when a background task is gone; may be NULL */
    void *task_end_ctx;
    struct duda_topic_receiver *topic_receiver;
    struct duda_lock_waiter *lock_waiters; /* locks held or awaited, most recent first */
    struct duda_terminated *terminated;    /* NULL: not terminated */
    struct duda_wait *waits;               /* active waits, most recent first */
    struct duda_cleanup *cleanups;
    struct duda_chunk *chunk;
    const struct duda_param_value *params;
    size_t n_params;
};

/* Does the fiber run error handlers, instead of the handler of the route? See service/error_handlers.h. */
static inline bool duda_ctx_runs_error_handlers(const struct duda_ctx *d)
{
    return d->extras && d->extras->errors;
}

/* Returns whether status and headers are final. Also true if there is no response. */
static inline bool duda_head_is_final(struct duda_ctx *d)
{
    return !d->response || d->output == DUDA_OUTPUT_STREAMED;
}

/* Returns the header as a slice of the request, without a terminating NUL. Absent if the header is missing.
 * Allocates nothing. */
mk_str duda_header_view(struct duda_ctx *d, const char *name);
/* Longer messages are truncated. */
enum { DUDA_LOG_MAX = 1024 };
/* Logs to the virtual host of the request or, without a request, to the server log. */
void duda_log_plain(struct duda_ctx *d, enum mk_log_level level, const char *fmt, ...) MK_API_PRINTF(3, 4);

#endif
