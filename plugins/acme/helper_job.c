/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/json.h>
#include <monkey/version.h>

#include "helper_run.h"

enum { VARIABLE_MAX = 64 * 1024 };

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
    write_string_member(w, "file", spec->file);
    write_string_list(w, "names", spec->names, spec->n);
    write_string_member(w, "challenge", mk_str_from_c(spec->challenge));
    write_string_member(w, "key", mk_str_from_c(spec->key));
    write_string_member(w, "profile", spec->profile);
    mk_json_end_object(w);
}

static void write_hook(struct mk_json_writer *w, const struct acme_helper_job *job)
{
    const struct acme_settings *s = job->settings;
    mk_json_uint(mk_json_key(w, "hook_timeout_s"), s->hook_timeout_ms / 1000);
    mk_json_uint(mk_json_key(w, "propagation_s"), s->propagation_ms / 1000);
}

/* NAME=FIRST and the other words, each on a line of its own. */
static const char *join_lines(struct mk_config *config, const char *name, mk_str first, const mk_str *rest,
                              size_t n)
{
    struct mk_buf text = mk_buf_growing(VARIABLE_MAX);
    mk_buf_addf(&text, "%s=%.*s", name, MK_STR_ARG(first));
    for (size_t i = 0; i < n; i++)
        mk_buf_addf(&text, "\n%.*s", MK_STR_ARG(rest[i]));
    mk_str copy = text.failed ? MK_STR_NULL : mk_config_copy(config, mk_buf_str(&text));
    mk_buf_free(&text);
    return copy.p;
}

bool acme_helper_job_set_variables(struct mk_config *config, struct acme_helper_job *job)
{
    static const char *const usual[] = {"PATH=/usr/local/bin:/usr/bin:/bin",
                                        "https_proxy",
                                        "HTTPS_PROXY",
                                        "all_proxy",
                                        "ALL_PROXY",
                                        "no_proxy",
                                        "NO_PROXY",
                                        "SSL_CERT_FILE",
                                        "SSL_CERT_DIR"};
    _Static_assert(MK_LEN(usual) + 2 == ACME_VARIABLES_MAX, "with the two variables of the hook");
    const struct acme_settings *s = job->settings;
    size_t n = MK_LEN(usual);
    job->variables = mk_config_alloc(config, (ACME_VARIABLES_MAX + 1) * sizeof *job->variables);
    if (!job->variables)
        return false;
    memcpy(job->variables, usual, sizeof usual);
    if (job->hook && !(job->variables[n++] = join_lines(config, "MONKEY_ACME_HOOK", mk_str_from_c(job->hook),
                                                        s->hook.v + 1, s->hook.n - 1)))
        return false;
    return !job->hook || !s->n_hook_env ||
           (job->variables[n] = join_lines(config, "MONKEY_ACME_HOOK_ENVIRONMENT", s->hook_env[0],
                                           s->hook_env + 1, s->n_hook_env - 1));
}

static void write_on_demand(struct mk_json_writer *w, const struct acme_helper_job *job, mk_str name)
{
    const struct acme_cert_spec *spec = job->on_demand;
    mk_json_begin_object(mk_json_key(w, "on_demand"));
    write_string_member(w, "name", name);
    mk_json_uint(mk_json_key(w, "max"), job->settings->max_certificates);
    write_string_member(w, "challenge", mk_str_from_c(spec->challenge));
    write_string_member(w, "key", mk_str_from_c(spec->key));
    write_string_member(w, "profile", spec->profile);
    mk_json_end_object(w);
}

void acme_helper_job_write_json(const struct acme_helper_job *job, mk_str name, struct mk_buf *out)
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
    write_hook(&w, job);
    if (job->on_demand)
        write_on_demand(&w, job, name);
    mk_json_begin_array(mk_json_key(&w, "certificates"));
    for (const struct acme_cert_spec *spec = job->on_demand ? NULL : job->specs; spec; spec = spec->next)
        write_cert_spec(&w, spec);
    mk_json_end_array(&w);
    mk_json_end_object(&w);
}
