/* SPDX-License-Identifier: Apache-2.0 */
/* One run: determines which certificates are due, gets them, and requests the time of the next run. The
 * plugin starts it; between runs there is no process. */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "account.h"
#include "order.h"
#include "retry.h"
#include "store.h"

enum { EXIT_BUSY = 75 /* EX_TEMPFAIL: another helper uses the same state */, LOOK_S = 12 * 3600 };

struct round {
    const struct acme_plan *plan;
    struct acme_client client;
    bool is_open, is_blocked; /* is_blocked: the authority or the account cannot be used now */
    int64_t next;             /* time of the next run */
};

static void come_back(struct round *r, int64_t at)
{
    if (at < r->next)
        r->next = at;
}

static void block(struct round *r, const struct acme_fault *f)
{
    r->is_blocked = true;
    come_back(r, acme_retry_note(r->plan, NULL, time(NULL), f));
}

static bool open_round(struct round *r)
{
    struct acme_fault f = {0};
    if (r->is_open || r->is_blocked)
        return r->is_open && !r->is_blocked;
    int64_t now = time(NULL), until = acme_retry_time(r->plan, NULL, now);
    if (until > now) {
        r->is_blocked = true;
        come_back(r, until);
        return false;
    }
    r->is_open = acme_client_open(&r->client, r->plan, &f) && acme_account_open(&r->client, &f);
    if (!r->is_open) {
        acme_client_close(&r->client);
        block(r, &f);
    }
    return r->is_open;
}

static bool order(struct round *r, const struct acme_wish *w, struct acme_fault *f)
{
    if (acme_order_fulfil(&r->client, w, f))
        return true;
    if (strcmp(f->type, "accountDoesNotExist") != 0)
        return false;
    acme_account_forget(&r->client);
    EVP_PKEY_free(r->client.key);
    r->client.key = NULL;
    return acme_account_open(&r->client, f) && acme_order_fulfil(&r->client, w, f);
}

static void serve(struct round *r, const struct acme_wish *w)
{
    struct acme_fault f;
    int64_t now = time(NULL), due = acme_order_due(r->plan, w, now, &f),
            until = acme_retry_time(r->plan, w, now);
    if (due > now || until > now) {
        come_back(r, due > until ? due : until);
        return;
    }
    if (f.text[0])
        acme_say(MK_LOG_WARN, "%s: %s", w->name, f.text);
    if (!open_round(r))
        return;
    f = (struct acme_fault){0};
    if (order(r, w, &f)) {
        acme_retry_forget(w);
        acme_retry_forget(NULL);
        due = acme_order_due(r->plan, w, time(NULL), &f);
        come_back(r, due);
    } else if (f.is_everyone) {
        block(r, &f);
    } else {
        come_back(r, acme_retry_note(r->plan, w, time(NULL), &f));
    }
}

static void serve_all(const struct acme_plan *plan)
{
    int64_t now = time(NULL);
    struct round r = {.plan = plan, .next = now + LOOK_S};
    for (size_t i = 0; i < plan->n_wishes; i++)
        serve(&r, &plan->wishes[i]);
    acme_client_close(&r.client);
    now = time(NULL);
    acme_say_next(r.next > now ? (uint64_t)(r.next - now) : 1);
}

int main(void)
{
    struct acme_plan plan;
    struct acme_fault f = {0};
    if (!acme_plan_read(&plan, STDIN_FILENO, &f)) {
        acme_say(MK_LOG_ERROR, "%s", f.text);
        return 1;
    }
    int e = acme_store_open(&f);
    if (!e)
        serve_all(&plan);
    else if (e != -EAGAIN)
        acme_say(MK_LOG_ERROR, "%s", f.text);
    acme_plan_free(&plan);
    return !e ? 0 : e == -EAGAIN ? EXIT_BUSY : 1;
}
