/* SPDX-License-Identifier: Apache-2.0 */
/* Process pool: how many scripts a worker runs at once, how they are shared among clients, and which requests
 * wait. One per [CGI]. */
#ifndef CGI_POOL_H
#define CGI_POOL_H

#include "settings.h"

struct cgi_process;
struct cgi_client;

enum cgi_slot_state {
    CGI_SLOT_NONE,
    CGI_SLOT_WAITING,
    CGI_SLOT_GRANTED,  /* a script may be started in this slot */
    CGI_SLOT_REJECTED, /* the queue was full: replaced with a client that has fewer requests */
};

/* A request for a process slot; in the memory of its request. */
struct cgi_queue_entry {
    struct cgi_queue_entry *next, **at;
    struct mk_request *request;
    struct cgi_client *client;
    uint64_t number; /* in order of arrival */
    enum cgi_slot_state state;
};

struct cgi_pool {
    struct mk_worker *worker;
    const struct cgi_settings *settings; /* set by the first request */
    unsigned used;                       /* slots used by processes and granted entries */
    unsigned waiting;
    uint64_t n_tickets;
    struct cgi_client *clients;    /* clients that run scripts or wait */
    struct cgi_process *processes; /* running processes */
};

void cgi_pool_init(struct cgi_pool *p, struct mk_worker *worker);

/* Acquires a slot or queues the entry: its request is resumed when it is granted or rejected. False: the
 * queue is full, or out of memory. */
bool cgi_pool_request_slot(struct cgi_pool *p, const struct cgi_settings *settings,
                           struct cgi_queue_entry *queue_entry, struct mk_request *request);
/* The entry is no longer needed. */
void cgi_pool_cancel(struct cgi_pool *p, struct cgi_queue_entry *queue_entry);
/* Turns a granted slot into that of a process. Returns the client to pass to cgi_pool_release_slot(). */
struct cgi_client *cgi_pool_use_slot(struct cgi_queue_entry *queue_entry);
/* A process of that client has exited. Its slot goes to the waiting client that runs the fewest scripts;
 * among several, to the request that has waited longest. */
void cgi_pool_release_slot(struct cgi_pool *p, struct cgi_client *client);

#endif
