/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker.h"
#include <duda/jobs.h>
#include <duda/smtp.h>
#include <errno.h>

/* Sends a mail to the author of an issue; the payload of the job is its ID. */
static int send_mail(struct duda_ctx *d, const struct duda_job *job)
{
    struct duda_sql_result result;
    struct duda_smtp_result sent;
    uint64_t id;
    if (!mk_num_parse(job->payload, &id))
        return -EBADMSG;
    int e = duda_sql_query(d, db(d), &result,
                           "SELECT email, title FROM users JOIN issues ON author = name WHERE id = $1",
                           duda_sql_integer((int64_t)id));
    if (e || !result.n_rows)
        return e; /* no such user: done */
    mk_str url = duda_url_for(d, "issue", duda_value_members({"id", duda_value_integer((int64_t)id)}));
    if (!url.p)
        return -EINVAL; /* PublicUrl is not set */
    const struct duda_mail mail = {
        .from = MK_STR("tracker@example.org"),
        .to = &duda_sql_cell(&result, 0, 0)->text,
        .n_to = 1,
        .subject = duda_sprintf(d, "Re: %s", duda_sql_cell(&result, 0, 1)->text.p),
        .body = duda_sprintf(d, "There is a new comment: %s\n", url.p),
    };
    e = duda_smtp_send(d, duda_smtp_find(d, NULL), &mail, &sent);
    return e && sent.error.p ? duda_job_fail(d, e, "%s", sent.error.p) : e;
}

static const struct duda_job_type mail = {.name = "mail", .fn = send_mail, .concurrency = 4};

int start_mail(struct mk_worker *worker)
{
    return duda_jobs_register(worker, &mail);
}

int mail_author(struct duda_ctx *d, int64_t issue)
{
    return duda_jobs_enqueue(d, "mail", duda_sprintf(d, "%lld", (long long)issue), NULL, NULL);
}
