/* SPDX-License-Identifier: Apache-2.0 */
/* The ACME protocol: the directory, nonces, signed requests, problem documents (RFC 8555, sections 6 and
 * 7.1.1). */
#ifndef ACME_CLIENT_H
#define ACME_CLIENT_H

#include "http.h"
#include "job.h"
#include "key.h"

struct acme_client {
    const struct acme_job *plan;
    struct acme_http *net;
    EVP_PKEY *key;              /* the account's key */
    char account[ACME_URL_MAX]; /* the account's URL; "": not known yet */
    char new_nonce[ACME_URL_MAX], new_account[ACME_URL_MAX], new_order[ACME_URL_MAX];
    char terms[ACME_URL_MAX];        /* URL of the terms of service; "": none */
    char renewal_info[ACME_URL_MAX]; /* URL for renewal times (RFC 9773); "": the authority has none */
    json_t *directory;
    bool wants_binding;
    bool has_same_time;           /* the clock of this machine agrees with the authority's */
    struct mk_buf response_files; /* files to remove at the end, one per line */
    struct mk_buf dns_records;    /* values of the DNS records to remove at the end, one per line */
    char nonce[256];              /* nonce for the next request; "": none */
};

/* Reads the directory. */
bool acme_client_open(struct acme_client *c, const struct acme_job *plan, struct acme_error *f);
void acme_client_close(struct acme_client *c);

/*
 * Posts a payload, "" for none (POST-as-GET, section 6.3). Returns true on success (2xx); otherwise *f has
 * the problem. Repeats the request if the authority demands another nonce (badNonce). Free *r in either case.
 */
bool acme_client_post(struct acme_client *c, const char *url, mk_str payload, struct acme_response *r,
                      struct acme_error *f);
/* Like acme_client_post(), but returns the response's JSON object, or NULL on failure. *r may be NULL. */
json_t *acme_client_post_json(struct acme_client *c, const char *url, mk_str payload, struct acme_response *r,
                              struct acme_error *f);

/* Reads a problem document (RFC 7807, RFC 8555, section 6.7), which may be part of another object. */
void acme_client_parse_problem(const json_t *problem, const char *what, struct acme_error *f);

#endif
