/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

void cgi_pool_init(struct cgi_pool *p, struct mk_worker *worker)
{
    *p = (struct cgi_pool){.worker = worker};
    p->last = &p->first;
}

static void remove_waiting(struct cgi_pool *p, struct cgi_ticket *t)
{
    *t->at = t->next;
    if (t->next)
        t->next->at = t->at;
    else
        p->last = t->at;
    p->waiting--;
}

bool cgi_pool_enter(struct cgi_pool *p, const struct cgi_settings *settings, struct cgi_ticket *ticket,
                    struct mk_request *request)
{
    *ticket = (struct cgi_ticket){.request = request, .state = CGI_TICKET_VALID};
    if (p->used < settings->processes) {
        p->used++;
        return true;
    }
    ticket->state = CGI_TICKET_NONE;
    if (p->waiting >= settings->waiting)
        return false;
    ticket->state = CGI_TICKET_WAITS;
    ticket->at = p->last;
    *p->last = ticket;
    p->last = &ticket->next;
    p->waiting++;
    return true;
}

void cgi_pool_give_up(struct cgi_pool *p, struct cgi_ticket *ticket)
{
    if (ticket->state == CGI_TICKET_WAITS)
        remove_waiting(p, ticket);
    else if (ticket->state == CGI_TICKET_VALID)
        cgi_pool_release(p);
    ticket->state = CGI_TICKET_NONE;
}

void cgi_pool_use(struct cgi_ticket *ticket)
{
    ticket->state = CGI_TICKET_NONE;
}

void cgi_pool_release(struct cgi_pool *p)
{
    struct cgi_ticket *t = p->first;
    if (!t) {
        p->used--;
        return;
    }
    remove_waiting(p, t);
    t->state = CGI_TICKET_VALID;
    mk_request_resume(t->request);
}
