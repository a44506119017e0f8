/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/version.h>

#include "helper_process.h"

static void append_member(struct mk_buf *out, const char *key, mk_str value)
{
    if (!value.p)
        return;
    mk_buf_addf(out, ",\"%s\":", key);
    mk_json_quote(out, value);
}

static void append_string_list(struct mk_buf *out, const char *key, const mk_str *v, size_t n)
{
    mk_buf_addf(out, "\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        if (i)
            mk_buf_add_char(out, ',');
        mk_json_quote(out, v[i]);
    }
    mk_buf_add_char(out, ']');
}

static void append_cert_spec(struct mk_buf *out, const struct acme_cert_spec *w)
{
    mk_buf_add_char(out, '{');
    append_string_list(out, "names", w->names, w->n);
    append_member(out, "challenge", mk_str_from_c(w->challenge));
    append_member(out, "key", mk_str_from_c(w->key));
    mk_buf_add_char(out, '}');
}

void acme_helper_job_write_json(const struct acme_helper_job *job, struct mk_buf *out)
{
    const struct acme_settings *s = job->settings;
    mk_buf_addf(out, "{\"renew_percent\":%u,\"retry_s\":%u,", s->renew_after, (unsigned)(s->retry_ms / 1000));
    append_string_list(out, "contact", s->contact.v, s->contact.n);
    append_member(out, "agent", MK_STR("monkey-acme/" MONKEY_VERSION));
    append_member(out, "directory", s->directory);
    append_member(out, "authority", s->authority);
    append_member(out, "eab_id", s->account_id);
    append_member(out, "eab_key", s->account_key);
    mk_buf_add(out, MK_STR(",\"certificates\":["));
    for (const struct acme_cert_spec *w = job->specs; w; w = w->next) {
        append_cert_spec(out, w);
        if (w->next)
            mk_buf_add_char(out, ',');
    }
    mk_buf_add(out, MK_STR("]}"));
}
