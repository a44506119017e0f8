/* SPDX-License-Identifier: Apache-2.0 */
/* How many scripts a worker runs at a time, and who waits for one of them to end. One for each [CGI]. */
#ifndef CGI_POOL_H
#define CGI_POOL_H

#include "settings.h"

struct cgi_process;

/* The wish to run a script; in the memory of its request. */
struct cgi_ticket {
    struct cgi_ticket *next, **at;
    struct mk_request *request;
    enum { CGI_TICKET_NONE, CGI_TICKET_WAITS, CGI_TICKET_VALID } state;
};

struct cgi_pool {
    struct mk_worker *worker;
    unsigned used; /* places of processes, and of valid tickets */
    unsigned waiting;
    struct cgi_ticket *first, **last;
    struct cgi_process *processes; /* that have not ended */
};

void cgi_pool_init(struct cgi_pool *p, struct mk_worker *worker);

/* Takes a place for the ticket, or lets it wait: its request is resumed when it has become valid. False: too
 * many wait. */
bool cgi_pool_enter(struct cgi_pool *p, const struct cgi_settings *settings, struct cgi_ticket *ticket,
                    struct mk_request *request);
/* The ticket will not be used (any more). */
void cgi_pool_give_up(struct cgi_pool *p, struct cgi_ticket *ticket);
/* The place of a valid ticket goes over to a process. */
void cgi_pool_use(struct cgi_ticket *ticket);
/* A place is free again: for whoever waits longest. */
void cgi_pool_release(struct cgi_pool *p);

#endif
