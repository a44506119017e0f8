/* SPDX-License-Identifier: Apache-2.0 */
/* A process pool limits how many scripts a worker runs at once, shares them among clients, and queues
 * requests. Each [CGI] section has its own pool. */
#ifndef CGI_POOL_H
#define CGI_POOL_H

#include <monkey/state_machine.h>

#include "settings.h"

struct cgi_process;
struct cgi_client;

enum cgi_slot_state {
    CGI_SLOT_NONE,
    CGI_SLOT_WAITING,
    CGI_SLOT_GRANTED,  /* a script may be started in this slot */
    CGI_SLOT_REJECTED, /* the queue was full, and another client's request took this place */
    CGI_SLOT_STATES
};

extern const struct mk_state_machine cgi_slot_machine;

/* A request that waits for a process slot; allocated in the memory of the HTTP request. */
struct cgi_queue_entry {
    struct cgi_queue_entry *next, **at;
    struct mk_request *request;
    struct cgi_client *client;
    uint64_t number;       /* sequence number, in order of arrival */
    struct mk_state state; /* enum cgi_slot_state */
};

struct cgi_pool {
    struct mk_worker *worker;
    const struct cgi_settings *settings; /* set by the first request */
    unsigned used;                       /* slots used by processes and granted entries */
    unsigned waiting;
    uint64_t n_requests;
    struct cgi_client *clients;    /* clients that run scripts or wait */
    struct cgi_process *processes; /* running processes */
};

void cgi_pool_init(struct cgi_pool *p, struct mk_worker *worker);

/* Acquires a slot or queues the entry; its request is resumed when the slot is granted or rejected. Returns
 * false if the queue is full or memory has run out. */
bool cgi_pool_request_slot(struct cgi_pool *p, const struct cgi_settings *settings,
                           struct cgi_queue_entry *queue_entry, struct mk_request *request);
/* Removes an entry from the queue, or releases its slot. */
void cgi_pool_cancel(struct cgi_pool *p, struct cgi_queue_entry *queue_entry);
/* Transfers a granted slot to a process. Returns the client to pass to cgi_pool_release_slot(). */
struct cgi_client *cgi_pool_use_slot(struct cgi_queue_entry *queue_entry);
/* Call this when a process of that client has exited. Its slot goes to the waiting client that runs the
 * fewest scripts; if there are several, to the request that has waited longest. */
void cgi_pool_release_slot(struct cgi_pool *p, struct cgi_client *client);

#endif
