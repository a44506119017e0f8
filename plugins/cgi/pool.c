/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

struct cgi_client {
    struct cgi_client *next;
    struct mk_addr peer;
    unsigned used, waiting;
    struct cgi_queue_entry *first, **last; /* the client's waiting requests */
};

/* ---- The states of a slot ---- */

#define TO(state) MK_STATE_TO(CGI_SLOT_##state)

static const struct mk_state_table states = {
    MK_STATE_ROW(CGI_SLOT_NONE, "none", TO(WAITING) | TO(GRANTED)),
    MK_STATE_ROW(CGI_SLOT_WAITING, "waiting", TO(GRANTED) | TO(REJECTED) | TO(NONE)),
    /* a process takes the slot, or the pool gets it back */
    MK_STATE_ROW(CGI_SLOT_GRANTED, "granted", TO(NONE)),
    MK_STATE_ROW(CGI_SLOT_REJECTED, "rejected", TO(NONE)),
};

static const char *slot_invariant(const void *owner)
{
    const struct cgi_queue_entry *t = owner;
    if (t->state.current == CGI_SLOT_WAITING && (!t->at || *t->at != t || !t->client->waiting))
        return "it is in the queue of its client";
    return t->state.current == CGI_SLOT_GRANTED && !t->client->used ? "its client uses a slot" : NULL;
}

const struct mk_state_machine cgi_slot_machine = {"slot of a CGI process", &states, CGI_SLOT_STATES,
                                                  slot_invariant};

static void slot_move(struct cgi_queue_entry *t, enum cgi_slot_state to)
{
    mk_state_move(&t->state, &cgi_slot_machine, t, to);
}

void cgi_pool_init(struct cgi_pool *p, struct mk_worker *worker)
{
    *p = (struct cgi_pool){.worker = worker};
}

/* ---- Clients ---- */

static struct cgi_client *find_client(struct cgi_pool *p, const struct mk_addr *peer)
{
    struct mk_addr one;
    mk_addr_client_prefix(peer, &one);
    struct cgi_client *c = p->clients;
    while (c && (memcmp(c->peer.ip, one.ip, sizeof one.ip) != 0 || c->peer.is_unix != one.is_unix))
        c = c->next;
    if (c)
        return c;
    c = mk_mem_alloc(sizeof *c);
    if (!c)
        return NULL;
    *c = (struct cgi_client){.next = p->clients, .peer = one};
    c->last = &c->first;
    p->clients = c;
    return c;
}

static void free_client_if_idle(struct cgi_pool *p, struct cgi_client *c)
{
    if (c->used || c->waiting)
        return;
    struct cgi_client **at = &p->clients;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    mk_mem_free(c);
}

/* The default leaves a quarter of the slots to other clients, if there is more than one slot. */
static unsigned per_client_max(const struct cgi_settings *s)
{
    unsigned most = s->per_address ? s->per_address : (unsigned)((uint64_t)s->processes * 3 / 4);
    return most ? most : 1;
}

static bool may_start_process(const struct cgi_pool *p, const struct cgi_client *c)
{
    return p->used < p->settings->processes && c->used < per_client_max(p->settings);
}

/* ---- The queue ---- */

static void enqueue_request(struct cgi_pool *p, struct cgi_queue_entry *t)
{
    struct cgi_client *c = t->client;
    t->number = p->n_requests++;
    t->at = c->last;
    *c->last = t;
    c->last = &t->next;
    c->waiting++;
    p->waiting++;
    slot_move(t, CGI_SLOT_WAITING);
}

static void dequeue_request(struct cgi_pool *p, struct cgi_queue_entry *t)
{
    struct cgi_client *c = t->client;
    *t->at = t->next;
    if (t->next)
        t->next->at = t->at;
    else
        c->last = t->at;
    c->waiting--;
    p->waiting--;
}

static void grant_slot(struct cgi_pool *p, struct cgi_queue_entry *t)
{
    t->client->used++;
    p->used++;
    slot_move(t, CGI_SLOT_GRANTED);
}

/* Returns whether `c` gets a slot before `other`. Both have waiting requests. */
static bool is_served_before(const struct cgi_client *c, const struct cgi_client *other)
{
    return c->used < other->used || (c->used == other->used && c->first->number < other->first->number);
}

static void grant_next_slots(struct cgi_pool *p)
{
    struct cgi_client *best = NULL;
    for (struct cgi_client *c = p->clients; c; c = c->next)
        if (c->waiting && may_start_process(p, c) && (!best || is_served_before(c, best)))
            best = c;
    if (!best)
        return;
    struct cgi_queue_entry *t = best->first;
    grant_slot(p, t);
    dequeue_request(p, t);
    mk_request_resume(t->request);
}

/* In a full queue, drops the latest request of the client with the most requests, to make room for a client
 * with fewer. */
static bool drop_request_of_busiest(struct cgi_pool *p, const struct cgi_client *newcomer)
{
    struct cgi_client *most = NULL;
    for (struct cgi_client *c = p->clients; c; c = c->next)
        if (!most || c->waiting > most->waiting)
            most = c;
    if (!most || most->waiting <= newcomer->waiting + 1)
        return false;
    struct cgi_queue_entry *t = most->first;
    while (t->next)
        t = t->next;
    slot_move(t, CGI_SLOT_REJECTED);
    dequeue_request(p, t);
    mk_request_resume(t->request);
    return true;
}

/* ---- Queries ---- */

bool cgi_pool_request_slot(struct cgi_pool *p, const struct cgi_settings *settings,
                           struct cgi_queue_entry *queue_entry, struct mk_request *request)
{
    struct cgi_client *c = find_client(p, mk_request_client_addr(request));
    *queue_entry = (struct cgi_queue_entry){.request = request, .client = c};
    p->settings = settings;
    if (!c)
        return false;
    if (!c->waiting && may_start_process(p, c)) {
        grant_slot(p, queue_entry);
        return true;
    }
    if (p->waiting >= settings->waiting && !drop_request_of_busiest(p, c)) {
        free_client_if_idle(p, c);
        return false;
    }
    enqueue_request(p, queue_entry);
    return true;
}

void cgi_pool_cancel(struct cgi_pool *p, struct cgi_queue_entry *queue_entry)
{
    enum cgi_slot_state state = (enum cgi_slot_state)queue_entry->state.current;
    if (state != CGI_SLOT_NONE)
        slot_move(queue_entry, CGI_SLOT_NONE);
    if (state == CGI_SLOT_GRANTED)
        cgi_pool_release_slot(p, queue_entry->client);
    if (state != CGI_SLOT_WAITING)
        return;
    dequeue_request(p, queue_entry);
    free_client_if_idle(p, queue_entry->client);
}

struct cgi_client *cgi_pool_use_slot(struct cgi_queue_entry *queue_entry)
{
    slot_move(queue_entry, CGI_SLOT_NONE);
    return queue_entry->client;
}

void cgi_pool_release_slot(struct cgi_pool *p, struct cgi_client *client)
{
    client->used--;
    p->used--;
    grant_next_slots(p);
    free_client_if_idle(p, client);
}
