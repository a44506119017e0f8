/* SPDX-License-Identifier: Apache-2.0 */
/* A contact form that sends its messages by mail. A background job sends them, so that clients do not wait
 * for the mail server, and no message is lost while it is down. */
#define DUDA_USE      "duda-jobs", "duda-kv", "duda-smtp"
#define DUDA_SETTINGS contact_table
#include <duda.h>
#include <duda/jobs.h>
#include <duda/smtp.h>
#include <errno.h>

struct contact {
    mk_str from, to;
};

static const struct mk_conf_key contact_keys[] = {
    {.name = "From",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct contact, from),
     .flags = MK_CONF_REQUIRED,
     .help = "The address of the site."},
    {.name = "To",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct contact, to),
     .flags = MK_CONF_REQUIRED,
     .help = "Where messages go."},
};
static const struct mk_conf_table contact_table = {.section = "CONTACT",
                                                   .keys = contact_keys,
                                                   .n = MK_LEN(contact_keys),
                                                   .size = sizeof(struct contact),
                                                   .help = "A contact form."};

/* ---- The mail ---- */

/* The payload of the job is the sender's address, a newline, and the text. Temporary errors are retried, for
 * example while the mail server is down; a message that the server rejects permanently is not. */
static int send_mail(struct duda_ctx *d, const struct duda_job *job)
{
    const struct contact *contact = duda_settings(d);
    mk_str text = job->payload, sender = mk_str_cut(&text, '\n');
    const struct duda_mail mail = {.from = contact->from,
                                   .to = &contact->to,
                                   .n_to = 1,
                                   .reply_to = sender,
                                   .subject = MK_STR("A message from the site"),
                                   .body = text};
    struct duda_smtp_result result;
    int e = duda_smtp_send(d, duda_smtp_find(d, NULL), &mail, &result);
    return e && result.error.p ? duda_job_fail(d, e == -EINVAL ? -EBADMSG : e, "%s", result.error.p) : e;
}

static const struct duda_job_type mail_job = {.name = "mail", .fn = send_mail};

static int start(struct mk_worker *worker)
{
    return duda_jobs_register(worker, &mail_job);
}

/* ---- The form ---- */

struct message {
    mk_str address, text;
};

static const struct duda_schema_field members[] = {
    DUDA_STRING(struct message, address, .min_length = 3, .max_length = DUDA_MAIL_ADDRESS_MAX),
    DUDA_STRING(struct message, text, .min_length = 1, .max_length = 5000),
};
static const struct duda_schema schema = DUDA_SCHEMA(struct message, members, .allow_unknown = true);

static int render(struct duda_ctx *d, const struct message *m, const char *error)
{
    const struct duda_entry page[] = {
        {"error", error ? duda_value_text(mk_str_from_c(error)) : duda_value_null()},
        {"sent", duda_value_bool(duda_query(d, "sent").p != NULL)},
        {"address", duda_value_text(m->address)},
        {"text", duda_value_text(m->text)},
    };
    return duda_render(d, "form.html", duda_value_map(page, MK_LEN(page)));
}

static int show(struct duda_ctx *d)
{
    return render(d, &(struct message){MK_STR(""), MK_STR("")}, NULL);
}

static int receive(struct duda_ctx *d)
{
    struct message m = {MK_STR(""), MK_STR("")};
    struct duda_validation_errors errors;
    int e = duda_bind_form(d, &schema, &m, &errors);
    if (e == -EINVAL || (!e && !duda_mail_is_address(m.address))) {
        e = render(d, &m, "Please give your address, as in ana@example.org, and a text.");
        return e ? e : duda_status(d, 422);
    }
    mk_str job = duda_sprintf(d, "%.*s\n%.*s\n", MK_STR_ARG(m.address), MK_STR_ARG(m.text));
    e = e ? e : duda_jobs_enqueue(d, "mail", job, NULL, NULL);
    return e ? e : duda_redirect(d, 303, MK_STR("/?sent=1"));
}

DUDA_SERVICE(contact, DUDA_START(start), DUDA_BEFORE(duda_csrf_check), DUDA_GET("/", show, "The form."),
             DUDA_POST("/", receive, "Sends a message."));
