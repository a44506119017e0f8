/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/json.h>
#include <monkey/version.h>

#include "helper_process.h"

static void write_string_member(struct mk_json_writer *w, const char *key, mk_str value)
{
    if (value.p)
        mk_json_string(mk_json_key(w, key), value);
}

static void write_string_list(struct mk_json_writer *w, const char *key, const mk_str *v, size_t n)
{
    mk_json_begin_array(mk_json_key(w, key));
    for (size_t i = 0; i < n; i++)
        mk_json_string(w, v[i]);
    mk_json_end_array(w);
}

static void write_cert_spec(struct mk_json_writer *w, const struct acme_cert_spec *spec)
{
    mk_json_begin_object(w);
    write_string_list(w, "names", spec->names, spec->n);
    write_string_member(w, "challenge", mk_str_from_c(spec->challenge));
    write_string_member(w, "key", mk_str_from_c(spec->key));
    mk_json_end_object(w);
}

void acme_helper_job_write_json(const struct acme_helper_job *job, struct mk_buf *out)
{
    const struct acme_settings *s = job->settings;
    struct mk_json_writer w = mk_json_writer_to(out);
    mk_json_begin_object(&w);
    mk_json_uint(mk_json_key(&w, "renew_percent"), s->renew_after);
    mk_json_uint(mk_json_key(&w, "retry_s"), s->retry_ms / 1000);
    write_string_list(&w, "contact", s->contact.v, s->contact.n);
    write_string_member(&w, "agent", MK_STR("monkey-acme/" MONKEY_VERSION));
    write_string_member(&w, "directory", s->directory);
    write_string_member(&w, "authority", s->authority);
    write_string_member(&w, "eab_id", s->account_id);
    write_string_member(&w, "eab_key", s->account_key);
    mk_json_begin_array(mk_json_key(&w, "certificates"));
    for (const struct acme_cert_spec *spec = job->specs; spec; spec = spec->next)
        write_cert_spec(&w, spec);
    mk_json_end_array(&w);
    mk_json_end_object(&w);
}
