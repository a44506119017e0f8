/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <time.h>

#include "account.h"
#include "order.h"
#include "renewal.h"
#include "retry.h"

enum { LOOK_S = 12 * 3600 };

void acme_run_schedule(struct acme_run *r, int64_t at)
{
    if (at < r->next)
        r->next = at;
}

static void block_on_account_error(struct acme_run *r, const struct acme_error *f)
{
    r->is_blocked = true;
    acme_run_schedule(r, acme_retry_record_failure(r->plan, NULL, time(NULL), f));
}

bool acme_run_open_client(struct acme_run *r)
{
    struct acme_error f = {0};
    if (r->is_open || r->is_blocked)
        return r->is_open && !r->is_blocked;
    int64_t now = time(NULL), until = acme_retry_time(r->plan, NULL, now);
    if (until > now) {
        r->is_blocked = true;
        acme_retry_log_wait(r->plan, NULL, until - now);
        acme_run_schedule(r, until);
        return false;
    }
    r->is_open = acme_client_open(&r->client, r->plan, &f) && acme_account_open(&r->client, &f);
    if (!r->is_open) {
        acme_client_close(&r->client);
        block_on_account_error(r, &f);
    }
    return r->is_open;
}

static bool obtain_certificate(struct acme_run *r, const struct acme_cert_spec *w, struct acme_error *f)
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

/* Asks when to renew the certificate, if it is time to ask, and schedules the next question. */
static void ask_renewal_time(struct acme_run *r, const struct acme_cert_spec *w)
{
    struct acme_renewal known;
    char id[ACME_CERT_ID_MAX];
    acme_order_cert_id(w, id);
    if (!id[0])
        return;
    bool is_known = acme_renewal_load(&known, w, id);
    if (!is_known && !acme_run_open_client(r)) /* reads the directory, to learn the URL */
        return;
    const char *url = is_known ? known.url : r->client.renewal_info;
    int64_t now = time(NULL);
    if (!is_known || (*url && known.check <= now))
        acme_renewal_ask(r->plan, w, id, url, now);
    if (acme_renewal_load(&known, w, id) && *known.url)
        acme_run_schedule(r, known.check);
}

/* Saves the time of the next renewal, and schedules it. */
static void schedule_renewal(struct acme_run *r, const struct acme_cert_spec *w, int64_t due)
{
    char id[ACME_CERT_ID_MAX];
    acme_order_cert_id(w, id);
    if (id[0])
        acme_renewal_save_next(w, id, due);
    acme_run_schedule(r, due);
}

bool acme_run_is_due(struct acme_run *r, const struct acme_cert_spec *w)
{
    struct acme_error f;
    int64_t now = time(NULL), due = acme_order_renewal_time(r->plan, w, now, &f),
            until = acme_retry_time(r->plan, w, now);
    if (due > now) { /* the certificate is usable */
        ask_renewal_time(r, w);
        due = acme_order_renewal_time(r->plan, w, now, &f);
    }
    if (due > now || until > now) {
        if (due <= now)
            acme_retry_log_wait(r->plan, w, until - now);
        schedule_renewal(r, w, due > until ? due : until);
        return false;
    }
    if (f.text[0])
        acme_report_log(MK_LOG_WARN, "%s: %s", w->name, f.text);
    return true;
}

bool acme_run_obtain(struct acme_run *r, const struct acme_cert_spec *w)
{
    struct acme_error f = {0};
    if (!acme_run_open_client(r))
        return false;
    if (obtain_certificate(r, w, &f)) {
        acme_report_issued();
        acme_retry_clear(w);
        acme_retry_clear(NULL);
        ask_renewal_time(r, w);
        schedule_renewal(r, w, acme_order_renewal_time(r->plan, w, time(NULL), &f));
        return true;
    }
    if (f.affects_all)
        block_on_account_error(r, &f);
    else
        acme_run_schedule(r, acme_retry_record_failure(r->plan, w, time(NULL), &f));
    return false;
}

struct acme_run acme_run_begin(const struct acme_job *plan)
{
    return (struct acme_run){.plan = plan, .next = time(NULL) + LOOK_S};
}

void acme_run_end(struct acme_run *r)
{
    int64_t now = time(NULL);
    acme_client_close(&r->client);
    acme_report_next_run(r->next > now ? (uint64_t)(r->next - now) : 1);
}
