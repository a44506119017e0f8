/* SPDX-License-Identifier: Apache-2.0 */
/* Talking ACME: the directory, nonces, signed requests, problems (RFC 8555, sections 6 and 7.1.1). */
#ifndef ACME_CLIENT_H
#define ACME_CLIENT_H

#include "key.h"
#include "net.h"
#include "plan.h"

struct acme_client {
    const struct acme_plan *plan;
    struct acme_net *net;
    EVP_PKEY *key;              /* of the account */
    char account[ACME_URL_MAX]; /* its URL; "": not known yet */
    char new_nonce[ACME_URL_MAX], new_account[ACME_URL_MAX], new_order[ACME_URL_MAX];
    char terms[ACME_URL_MAX]; /* of service; "": there are none */
    bool wants_binding;
    struct mk_buf answers; /* files that were laid out, a line each */
    char nonce[256];       /* for the next request; "": none is left */
};

/* Reads the directory. */
bool acme_client_open(struct acme_client *c, const struct acme_plan *plan, struct acme_fault *f);
void acme_client_close(struct acme_client *c);

/*
 * Posts a payload, "" for nothing (POST-as-GET, section 6.3), and answers true if that went well (2xx); else
 * the problem is in *f. What the authority only wants to be asked again (badNonce) is. *r is to be freed in
 * any case.
 */
bool acme_client_post(struct acme_client *c, const char *url, mk_str payload, struct acme_reply *r,
                      struct acme_fault *f);
/* The same, and its content is an object; NULL: a fault. *r may be NULL if nothing else of the answer
 * matters. */
json_t *acme_client_post_json(struct acme_client *c, const char *url, mk_str payload, struct acme_reply *r,
                              struct acme_fault *f);

/* What a problem document tells (RFC 7807, RFC 8555, section 6.7), which may be a part of something. */
void acme_client_problem(const json_t *problem, const char *what, struct acme_fault *f);

#endif
