/* SPDX-License-Identifier: Apache-2.0 */
/* A request and its script: state, timeouts and termination. */
#ifndef CGI_EXCHANGE_H
#define CGI_EXCHANGE_H

#include "stdin.h"

enum cgi_phase {
    CGI_SPOOL,   /* receiving the body */
    CGI_GATHER,  /* receiving the beginning of a body of unknown length, to stream the rest */
    CGI_WAIT,    /* waiting for a process slot */
    CGI_HEAD,    /* the script runs, but its head is incomplete */
    CGI_CONTENT, /* the response is being sent */
    CGI_OVER,
    CGI_PHASES
};

extern const struct mk_state_machine cgi_exchange_machine;

struct cgi_exchange {
    struct mk_request *request;
    const struct cgi_settings *settings;
    const struct cgi_route *route; /* NULL: the route has no arguments */
    struct cgi_pool *pool;
    struct cgi_script script;
    struct mk_state phase; /* enum cgi_phase */
    struct cgi_queue_entry queue_entry;
    struct cgi_process *process;
    struct mk_spool *content; /* the received body; NULL: no body, streamed, or passed to the script */
    struct cgi_stdin input;
    struct mk_buf head;    /* output of the script up to the beginning of its body */
    size_t seen, from;     /* bytes of `head` that were parsed; bytes of body data in it that were sent */
    uint64_t made;         /* body bytes so far */
    int64_t length;        /* body length declared by the script; -1: unknown */
    bool at_end;           /* the output has ended */
    bool bare;             /* the client gets no body */
    struct mk_timer timer; /* timeout or maximum run time of the script */
    uint64_t ends_at;      /* when the run time is over, on the loop's clock in ms; 0: no limit */
    bool late;
    const char *late_why;
};

static inline void cgi_exchange_move(struct cgi_exchange *c, enum cgi_phase to)
{
    mk_state_move(&c->phase, &cgi_exchange_machine, c, to);
}

/* Returns NULL if out of memory. */
struct cgi_exchange *cgi_exchange_new(struct mk_request *request, const struct cgi_script *script);

/* Starts the timeout for the total run time of the script. */
void cgi_exchange_start_max_time(struct cgi_exchange *c);
/* Resumes the handler after `ms` (0: no limit), or when the run time is over. `error` is the configuration
 * key that sets `ms`, for the error message. */
void cgi_exchange_set_timer(struct cgi_exchange *c, uint32_t ms, const char *error);
/* Waits for output of the script. `input` is the result of cgi_stdin_copy_body(). */
void cgi_exchange_wait_for_output(struct cgi_exchange *c, int input);

/* Releases all resources; may be called repeatedly. */
void cgi_exchange_stop(struct cgi_exchange *c);
enum mk_verdict cgi_exchange_respond_error(struct cgi_exchange *c, struct mk_response *response,
                                           unsigned status);
/* Like cgi_exchange_respond_error(), but for an error of the script, which is logged. `line` is the invalid
 * line of the script's head; absent if the error is elsewhere. */
enum mk_verdict cgi_exchange_script_error(struct cgi_exchange *c, struct mk_response *response,
                                          unsigned status, const char *what, mk_str line);

#endif
