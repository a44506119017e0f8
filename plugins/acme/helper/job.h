/* SPDX-License-Identifier: Apache-2.0 */
/* The job written by the plugin: JSON on standard input. */
#ifndef ACME_JOB_H
#define ACME_JOB_H

#include <jansson.h>

#include "report.h"

enum {
    ACME_NAMES_MAX = 100, /* per certificate; authorities accept no more */
    ACME_HOOK_WORDS_MAX = 16,
    ACME_HOOK_ENV_MAX = 64
};

/* Describes one certificate. The job owns the strings. */
struct acme_cert_spec {
    const char *name; /* base name of the certificate's files: the first host name, `_wildcard.` for `*.` */
    const char *names[ACME_NAMES_MAX];
    size_t n_names;
    const char *challenge; /* "http-01", "tls-alpn-01", "dns-01" */
    const char *key;       /* "ecdsa", "rsa" */
    const char *profile;   /* NULL: the authority's default */
};

/* Certificates that are issued when clients request them. */
struct acme_on_demand {
    bool is_set;                   /* the job is about these certificates, and has no others */
    const char *name;              /* the name to certify; NULL: look for those to renew */
    size_t max;                    /* maximum number of certificates */
    struct acme_cert_spec pattern; /* how to obtain them, without a name */
};

struct acme_job {
    json_t *root; /* owns all strings */
    /* The URL of the directory, and the file of trusted authorities (NULL: those of the system). */
    const char *directory, *authority;
    const char *agent;
    const json_t *contact;
    const char *eab_id, *eab_key; /* external account binding; NULL: none. The key is base64url */
    unsigned renew_percent;       /* renew a certificate after this percentage of its lifetime */
    uint64_t retry_s;             /* first delay after a failure */
    /* The program that changes DNS records, its arguments, and its environment (NAME=VALUE). They come from variables, which the
     * server allows, and not from the job, which a worker writes. */
    const char *hook[ACME_HOOK_WORDS_MAX], *hook_env[ACME_HOOK_ENV_MAX];
    size_t n_hook, n_hook_env;
    uint64_t hook_timeout_s, propagation_s; /* propagation_s: delay before the authority looks a record up */
    struct acme_cert_spec *specs;
    size_t n_specs;
    struct acme_on_demand on_demand;
};

bool acme_job_read(struct acme_job *p, int fd, struct acme_error *f);
void acme_job_free(struct acme_job *p);

/* Returns a string member of an object; NULL if there is none. */
const char *acme_json_string(const json_t *object, const char *key);

#endif
