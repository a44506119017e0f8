/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <monkey/mem.h>
#include <stdlib.h>
#include <string.h>

#include "../hostname.h"

const char *acme_json_string(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static uint64_t read_uint(const json_t *object, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(object, key));
    return n > 0 ? (uint64_t)n : 0;
}

static bool read_cert_spec(struct acme_cert_spec *w, const json_t *o)
{
    const json_t *names = json_object_get(o, "names"), *each;
    size_t i;
    w->challenge = acme_json_string(o, "challenge");
    w->key = acme_json_string(o, "key");
    w->profile = acme_json_string(o, "profile");
    json_array_foreach(names, i, each) if (json_is_string(each) && w->n_names < ACME_NAMES_MAX)
        w->names[w->n_names++] = json_string_value(each);
    w->name = acme_json_string(o, "file");
    return w->n_names && w->n_names == json_array_size(names) && w->name && w->challenge && w->key;
}

static bool read_cert_specs(struct acme_job *p, const json_t *list)
{
    const json_t *each;
    size_t i;
    p->specs = mk_mem_zalloc(json_array_size(list) + 1, sizeof *p->specs);
    if (!p->specs)
        return false;
    json_array_foreach(list, i, each) if (!read_cert_spec(&p->specs[p->n_specs++], each)) return false;
    return true;
}

/* Splits a variable into its lines. Returns false if there are more than `max`. */
static bool read_lines(const char *name, const char **v, size_t max, size_t *n)
{
    char *rest = getenv(name);
    while (rest && *n < max)
        v[(*n)++] = strsep(&rest, "\n");
    return !rest;
}

static bool read_hook(struct acme_job *p)
{
    p->hook_timeout_s = read_uint(p->root, "hook_timeout_s");
    p->propagation_s = read_uint(p->root, "propagation_s");
    return read_lines("MONKEY_ACME_HOOK", p->hook, ACME_HOOK_WORDS_MAX, &p->n_hook) &&
           read_lines("MONKEY_ACME_HOOK_ENVIRONMENT", p->hook_env, ACME_HOOK_ENV_MAX, &p->n_hook_env);
}

static bool read_on_demand(struct acme_job *p, const json_t *o)
{
    struct acme_on_demand *d = &p->on_demand;
    if (!o)
        return true;
    *d = (struct acme_on_demand){.is_set = true,
                                 .name = acme_json_string(o, "name"),
                                 .max = read_uint(o, "max"),
                                 .pattern = {.n_names = 1,
                                             .challenge = acme_json_string(o, "challenge"),
                                             .key = acme_json_string(o, "key"),
                                             .profile = acme_json_string(o, "profile")}};
    return d->pattern.challenge && d->pattern.key && d->max &&
           (!d->name || acme_hostname_is_public(mk_str_from_c(d->name)));
}

bool acme_job_read(struct acme_job *p, int fd, struct acme_error *f)
{
    json_error_t e;
    *p = (struct acme_job){.root = json_loadfd(fd, 0, &e)};
    if (!p->root)
        return acme_error_set(f, "cannot read the job description: %s", e.text);
    p->directory = acme_json_string(p->root, "directory");
    p->authority = acme_json_string(p->root, "authority");
    p->agent = acme_json_string(p->root, "agent");
    p->contact = json_object_get(p->root, "contact");
    p->eab_id = acme_json_string(p->root, "eab_id");
    p->eab_key = acme_json_string(p->root, "eab_key");
    p->renew_percent = (unsigned)read_uint(p->root, "renew_percent");
    p->retry_s = read_uint(p->root, "retry_s");
    if (!p->directory || !p->agent || p->renew_percent < 1 || p->renew_percent > 99 || !p->retry_s ||
        !read_hook(p) || !read_cert_specs(p, json_object_get(p->root, "certificates")) ||
        !read_on_demand(p, json_object_get(p->root, "on_demand"))) {
        acme_job_free(p);
        return acme_error_set(
            f, "the job description is incomplete: program and plugin are from different builds");
    }
    return true;
}

void acme_job_free(struct acme_job *p)
{
    mk_mem_free(p->specs);
    json_decref(p->root);
    *p = (struct acme_job){0};
}
