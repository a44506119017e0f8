/* SPDX-License-Identifier: Apache-2.0 */
/* One request and the script that answers it: its state, its clock and its end. */
#ifndef CGI_EXCHANGE_H
#define CGI_EXCHANGE_H

#include "stdin.h"

enum cgi_phase {
    CGI_SPOOL,   /* receives the content */
    CGI_GATHER,  /* receives the beginning of content without a length, to stream the rest */
    CGI_WAIT,    /* waits until it may start the script */
    CGI_HEAD,    /* the script runs, its head is not complete */
    CGI_CONTENT, /* the answer is being sent */
    CGI_OVER,
};

struct cgi_exchange {
    struct mk_request *request;
    const struct cgi_settings *settings;
    const struct cgi_route *route; /* NULL: it has no words of its own */
    struct cgi_pool *pool;
    struct cgi_script script;
    enum cgi_phase phase;
    struct cgi_queue_entry queue_entry;
    struct cgi_process *process;
    struct mk_spool *content; /* NULL: there is none, it is streamed, or the script has it */
    struct cgi_stdin input;
    struct mk_buf head;    /* the output of the script before its content, and the beginning of that */
    size_t seen, from;     /* of `head`: examined; and sent, when it is content */
    uint64_t made;         /* content so far */
    int64_t length;        /* of the content as the script says, -1: unknown */
    bool at_end;           /* the output has ended */
    bool bare;             /* the client gets no content */
    struct mk_timer timer; /* the script is too slow, or lives too long */
    uint64_t ends_at;      /* the clock of the loop; 0: no limit */
    bool late;
    const char *late_why;
};

/* NULL: memory is out. */
struct cgi_exchange *cgi_exchange_new(struct mk_request *request, const struct cgi_script *script);

/* Starts the time that the script may live, */
void cgi_exchange_start_max_time(struct cgi_exchange *c);
/* and wakes the call after `ms` (0: no limit), or when that time is up; `why` is the key that sets the limit.
 */
void cgi_exchange_set_timer(struct cgi_exchange *c, uint32_t ms, const char *why);
/* The script has no output now; `input` as of cgi_stdin_pump(). */
void cgi_exchange_wait_for_output(struct cgi_exchange *c, int input);

/* Releases all that it holds; harmless when there is nothing. */
void cgi_exchange_stop(struct cgi_exchange *c);
enum mk_verdict cgi_exchange_respond_error(struct cgi_exchange *c, struct mk_response *response,
                                           unsigned status);
/* The same for a mistake of the script, which goes to the error log. `line`: of its head; absent: the mistake
 * is elsewhere. */
enum mk_verdict cgi_exchange_script_error(struct cgi_exchange *c, struct mk_response *response,
                                          unsigned status, const char *what, mk_str line);

#endif
