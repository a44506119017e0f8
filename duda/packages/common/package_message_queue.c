/* SPDX-License-Identifier: Apache-2.0 */
#include "common/package_message_queue.h"

#include <duda/request.h>
#include <errno.h>
#include <monkey/mem.h>

struct package_message {
    struct package_message *next;
    size_t len;
    char text[]; /* NUL-terminated */
};

static void on_receive_timeout(struct mk_timer *t)
{
    struct package_message_queue *in = MK_CONTAINER(t, struct package_message_queue, timer);
    in->is_due = true;
    duda_wait_wake(&in->wait);
}

static void stop_receive_timer(struct duda_wait *w)
{
    mk_timer_stop(&((struct package_message_queue *)w)->timer);
}

void package_message_queue_init(struct package_message_queue *in, struct duda_ctx *d, unsigned max)
{
    *in = (struct package_message_queue){.d = d, .max = max, .last = &in->first};
    mk_timer_init(&in->timer, on_receive_timeout);
}

void package_message_queue_fini(struct package_message_queue *in)
{
    mk_timer_stop(&in->timer);
    mk_mem_free(in->popped);
    for (struct package_message *m = in->first, *next; m; m = next) {
        next = m->next;
        mk_mem_free(m);
    }
}

void package_message_queue_push(struct package_message_queue *in, mk_str text)
{
    struct package_message *m = in->n < in->max ? mk_mem_alloc(sizeof *m + text.len + 1) : NULL;
    if (m) {
        m->next = NULL;
        m->len = text.len;
        memcpy(m->text, text.p, text.len);
        m->text[text.len] = 0;
        *in->last = m;
        in->last = &m->next;
        in->n++;
    } else {
        in->has_lost = true;
    }
    duda_wait_wake(&in->wait);
}

void package_message_queue_wake(struct package_message_queue *in)
{
    duda_wait_wake(&in->wait);
}

int package_message_queue_wait_for(struct package_message_queue *in, const bool *holds, uint32_t ms)
{
    int e = duda_wait_begin(in->d, &in->wait, stop_receive_timer);
    if (e)
        return e;
    in->is_due = false;
    mk_timer_set(&in->timer, duda_worker(in->d), ms);
    while (!*holds && !in->is_due && !e)
        e = duda_wait_suspend(&in->wait);
    duda_wait_end(&in->wait);
    return e || *holds ? e : -ETIMEDOUT;
}

/* Returns 0 with a message, 1 if there is nothing to report, or an error to report once. */
static int pop_message(struct package_message_queue *in, mk_str *text)
{
    mk_mem_free(in->popped);
    in->popped = in->first;
    if (in->popped) {
        in->first = in->popped->next;
        if (!in->first)
            in->last = &in->first;
        in->n--;
        *text = mk_str_of(in->popped->text, in->popped->len);
        return 0;
    }
    if (in->has_lost || in->was_reset) {
        int e = in->has_lost ? -EOVERFLOW : -ECONNRESET;
        in->has_lost = in->was_reset = false;
        return e;
    }
    return 1;
}

int package_message_queue_receive(struct package_message_queue *in, uint32_t ms, mk_str *text)
{
    int e = duda_wait_begin(in->d, &in->wait, stop_receive_timer), got = 1;
    if (e)
        return e;
    in->is_due = false;
    if (ms != MK_FOREVER)
        mk_timer_set(&in->timer, duda_worker(in->d), ms);
    while (!e && (got = pop_message(in, text)) > 0 && !in->is_due)
        e = duda_wait_suspend(&in->wait);
    duda_wait_end(&in->wait);
    return e ? e : got > 0 ? -ETIME : got;
}
