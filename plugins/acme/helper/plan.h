/* SPDX-License-Identifier: Apache-2.0 */
/* What there is to do, as the plugin has written it: JSON on standard input. */
#ifndef ACME_PLAN_H
#define ACME_PLAN_H

#include <jansson.h>

#include "say.h"

enum { ACME_NAMES_MAX = 100 /* of one certificate, as authorities have it */ };

/* One certificate. Texts belong to the plan. */
struct acme_wish {
    const char *name; /* of its files: the first of its names */
    const char *names[ACME_NAMES_MAX];
    size_t n_names;
    const char *challenge; /* "http-01", "tls-alpn-01" */
    const char *key;       /* "ecdsa", "rsa" */
};

struct acme_plan {
    json_t *root; /* owner of all texts */
    const char *directory,
        *authority; /* URL, and the file of those whom to trust there (NULL: the system's) */
    const char *agent;
    const json_t *contact;
    const char *eab_id, *eab_key; /* external account binding; NULL: none. The key is base64url */
    unsigned renew_percent;       /* of its life a certificate is used before it is renewed */
    uint64_t retry_s;             /* first pause after a failure */
    struct acme_wish *wishes;
    size_t n_wishes;
};

bool acme_plan_read(struct acme_plan *p, int fd, struct acme_fault *f);
void acme_plan_free(struct acme_plan *p);

/* A text of an object; NULL: there is none. */
const char *acme_json_text(const json_t *object, const char *key);

#endif
