/* SPDX-License-Identifier: Apache-2.0 */
/* One request and the script that answers it. */
#ifndef CGI_CALL_H
#define CGI_CALL_H

#include "input.h"

enum cgi_phase {
    CGI_GATHER,  /* its content has no length: some of it is read first */
    CGI_WAIT,    /* too many scripts run */
    CGI_HEAD,    /* the script runs, its head is not whole */
    CGI_CONTENT, /* it is being sent */
    CGI_OVER,
};

struct cgi_call {
    struct mk_request *request;
    const struct cgi_settings *settings;
    const struct cgi_route *route; /* NULL: it says nothing */
    struct cgi_pool *pool;
    struct cgi_script script;
    enum cgi_phase phase;
    struct cgi_ticket ticket;
    struct cgi_process *process;
    struct cgi_input input;
    struct mk_buf head;     /* what the script has said before its content, and the beginning of that */
    size_t seen, from;      /* of `head`: looked at; and sent, when it is content */
    uint64_t made;          /* content so far */
    int64_t length;         /* of the content as the script says, -1: it does not */
    bool at_end;            /* its output has ended */
    bool bare;              /* the client gets no content */
    struct mk_alarm *alarm; /* the script is too slow, or lives too long */
    uint64_t ends_at;       /* the clock of the loop; 0: no limit */
    bool late;
    const char *late_why;
};

/* As mk_handler.handle; `pool` is the one of the settings in this worker. */
enum mk_verdict cgi_call_handle(struct mk_request *request, struct mk_response *response,
                                const struct cgi_settings *settings, const struct cgi_route *route,
                                struct cgi_pool *pool);

/* Wakes it after `ms` (0: no limit), or when the script's time is up; `why` is the key that says so. */
void cgi_call_set_alarm(struct cgi_call *c, uint32_t ms, const char *why);
/* The script has nothing for us now; `input` as of cgi_input_pump(). */
void cgi_call_wait_for_output(struct cgi_call *c, int input);

/* Lets go of all that it holds; harmless when there is nothing. */
void cgi_call_stop(struct cgi_call *c);
enum mk_verdict cgi_call_refuse(struct cgi_call *c, struct mk_response *response, unsigned status);
/* The script is to blame: its owner shall know. `line`: of its head; absent: it is about something else. */
enum mk_verdict cgi_call_blame(struct cgi_call *c, struct mk_response *response, unsigned status,
                               const char *what, mk_str line);

#endif
