/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <monkey/mem.h>

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
    json_array_foreach(names, i, each) if (json_is_string(each) && w->n_names < ACME_NAMES_MAX)
        w->names[w->n_names++] = json_string_value(each);
    w->name = w->names[0];
    return w->n_names && w->n_names == json_array_size(names) && w->challenge && w->key;
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
        !read_cert_specs(p, json_object_get(p->root, "certificates"))) {
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
