/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/version.h>

#include "runner.h"

static void add_text(struct mk_buf *out, const char *key, mk_str value)
{
    if (!value.p)
        return;
    mk_buf_addf(out, ",\"%s\":", key);
    mk_json_string(out, value);
}

static void add_list(struct mk_buf *out, const char *key, const mk_str *v, size_t n)
{
    mk_buf_addf(out, "\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        if (i)
            mk_buf_add_char(out, ',');
        mk_json_string(out, v[i]);
    }
    mk_buf_add_char(out, ']');
}

static void add_wish(struct mk_buf *out, const struct acme_wish *w)
{
    mk_buf_add_char(out, '{');
    add_list(out, "names", w->names, w->n);
    add_text(out, "challenge", mk_str_from_c(w->challenge));
    add_text(out, "key", mk_str_from_c(w->key));
    mk_buf_add_char(out, '}');
}

void acme_job_write(const struct acme_job *job, struct mk_buf *out)
{
    const struct acme_settings *s = job->settings;
    mk_buf_addf(out, "{\"renew_percent\":%u,\"retry_s\":%u,", s->renew_after, (unsigned)(s->retry_ms / 1000));
    add_list(out, "contact", s->contact.v, s->contact.n);
    add_text(out, "agent", MK_STR("monkey-acme/" MONKEY_VERSION));
    add_text(out, "directory", s->directory);
    add_text(out, "authority", s->authority);
    add_text(out, "eab_id", s->account_id);
    add_text(out, "eab_key", s->account_key);
    mk_buf_add(out, MK_STR(",\"certificates\":["));
    for (const struct acme_wish *w = job->wishes; w; w = w->next) {
        add_wish(out, w);
        if (w->next)
            mk_buf_add_char(out, ',');
    }
    mk_buf_add(out, MK_STR("]}"));
}
