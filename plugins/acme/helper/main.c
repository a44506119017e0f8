/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the helper: determines which certificates are due, obtains them, and requests the time of the
 * next run. The plugin starts each run; there is no process between runs. */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "account.h"
#include "order.h"
#include "retry.h"
#include "store.h"

enum { EXIT_BUSY = 75 /* EX_TEMPFAIL: another helper uses the same state */, LOOK_S = 12 * 3600 };

struct renewal_run {
    const struct acme_job *plan;
    struct acme_client client;
    bool is_open, is_blocked; /* is_blocked: the authority or the account cannot be used now */
    int64_t next;             /* time of the next run */
};

static void schedule_next_run(struct renewal_run *r, int64_t at)
{
    if (at < r->next)
        r->next = at;
}

static void block_on_account_error(struct renewal_run *r, const struct acme_error *f)
{
    r->is_blocked = true;
    schedule_next_run(r, acme_retry_record_failure(r->plan, NULL, time(NULL), f));
}

static bool open_client(struct renewal_run *r)
{
    struct acme_error f = {0};
    if (r->is_open || r->is_blocked)
        return r->is_open && !r->is_blocked;
    int64_t now = time(NULL), until = acme_retry_time(r->plan, NULL, now);
    if (until > now) {
        r->is_blocked = true;
        schedule_next_run(r, until);
        return false;
    }
    r->is_open = acme_client_open(&r->client, r->plan, &f) && acme_account_open(&r->client, &f);
    if (!r->is_open) {
        acme_client_close(&r->client);
        block_on_account_error(r, &f);
    }
    return r->is_open;
}

static bool obtain_certificate(struct renewal_run *r, const struct acme_cert_spec *w, struct acme_error *f)
{
    if (acme_order_obtain_cert(&r->client, w, f))
        return true;
    if (strcmp(f->type, "accountDoesNotExist") != 0)
        return false;
    acme_account_delete_saved(&r->client);
    EVP_PKEY_free(r->client.key);
    r->client.key = NULL;
    return acme_account_open(&r->client, f) && acme_order_obtain_cert(&r->client, w, f);
}

static void renew_if_due(struct renewal_run *r, const struct acme_cert_spec *w)
{
    struct acme_error f;
    int64_t now = time(NULL), due = acme_order_renewal_time(r->plan, w, now, &f),
            until = acme_retry_time(r->plan, w, now);
    if (due > now || until > now) {
        schedule_next_run(r, due > until ? due : until);
        return;
    }
    if (f.text[0])
        acme_report_log(MK_LOG_WARN, "%s: %s", w->name, f.text);
    if (!open_client(r))
        return;
    f = (struct acme_error){0};
    if (obtain_certificate(r, w, &f)) {
        acme_retry_clear(w);
        acme_retry_clear(NULL);
        due = acme_order_renewal_time(r->plan, w, time(NULL), &f);
        schedule_next_run(r, due);
    } else if (f.affects_all) {
        block_on_account_error(r, &f);
    } else {
        schedule_next_run(r, acme_retry_record_failure(r->plan, w, time(NULL), &f));
    }
}

static void renew_all(const struct acme_job *plan)
{
    int64_t now = time(NULL);
    struct renewal_run r = {.plan = plan, .next = now + LOOK_S};
    for (size_t i = 0; i < plan->n_specs; i++)
        renew_if_due(&r, &plan->specs[i]);
    acme_client_close(&r.client);
    now = time(NULL);
    acme_report_next_run(r.next > now ? (uint64_t)(r.next - now) : 1);
}

int main(void)
{
    struct acme_job plan;
    struct acme_error f = {0};
    if (!acme_job_read(&plan, STDIN_FILENO, &f)) {
        acme_report_log(MK_LOG_ERROR, "%s", f.text);
        return 1;
    }
    int e = acme_store_open(&f);
    if (!e)
        renew_all(&plan);
    else if (e != -EAGAIN)
        acme_report_log(MK_LOG_ERROR, "%s", f.text);
    acme_job_free(&plan);
    return !e ? 0 : e == -EAGAIN ? EXIT_BUSY : 1;
}
