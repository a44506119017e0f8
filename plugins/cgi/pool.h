/* SPDX-License-Identifier: Apache-2.0 */
/* How many scripts a worker runs at a time, how they are shared among clients, and which requests wait. One
 * for each [CGI]. */
#ifndef CGI_POOL_H
#define CGI_POOL_H

#include "settings.h"

struct cgi_process;
struct cgi_client;

enum cgi_slot_state {
    CGI_SLOT_NONE,
    CGI_SLOT_WAITING,
    CGI_SLOT_GRANTED,  /* a script may be started in its place */
    CGI_SLOT_REJECTED, /* the queue was full: it made room for a client with fewer requests */
};

/* The wish to run a script; in the memory of its request. */
struct cgi_queue_entry {
    struct cgi_queue_entry *next, **at;
    struct mk_request *request;
    struct cgi_client *client;
    uint64_t number; /* in the order of arrival */
    enum cgi_slot_state state;
};

struct cgi_pool {
    struct mk_worker *worker;
    const struct cgi_settings *settings; /* known from the first request on */
    unsigned used;                       /* places of processes, and of valid tickets */
    unsigned waiting;
    uint64_t n_tickets;
    struct cgi_client *clients;    /* that run scripts, or wait */
    struct cgi_process *processes; /* that have not ended */
};

void cgi_pool_init(struct cgi_pool *p, struct mk_worker *worker);

/* Takes a place for the ticket, or queues it: its request is resumed when it is valid or lost. False: the
 * queue is full, or memory is out. */
bool cgi_pool_request_slot(struct cgi_pool *p, const struct cgi_settings *settings,
                           struct cgi_queue_entry *queue_entry, struct mk_request *request);
/* The ticket is not needed any more. */
void cgi_pool_cancel(struct cgi_pool *p, struct cgi_queue_entry *queue_entry);
/* The place of a valid ticket becomes that of a process: the client that cgi_pool_release_slot() wants back. */
struct cgi_client *cgi_pool_use_slot(struct cgi_queue_entry *queue_entry);
/* A process of that client has ended. Its place goes to the waiting client that runs the fewest scripts; of
 * several, to the request that has waited longest. */
void cgi_pool_release_slot(struct cgi_pool *p, struct cgi_client *client);

#endif
