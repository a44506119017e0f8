/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the CA: HTTPS only, limited in time and size. The only file that uses libcurl. */
#ifndef ACME_HTTP_H
#define ACME_HTTP_H

#include "report.h"

enum { ACME_URL_MAX = 2048 };

struct acme_http;

/* A response. */
struct acme_response {
    unsigned status;
    struct mk_buf body; /* at most 1 MB */
    char type[128];     /* media type of the body */
    char nonce[256];    /* Replay-Nonce; "": none */
    char location[ACME_URL_MAX];
    uint64_t retry_s; /* Retry-After in seconds from now; 0: none */
    int64_t date;     /* the time according to the authority; 0: unknown */
};

/* `authority` is a file of trusted CA certificates; NULL uses the system's. */
struct acme_http *acme_http_open(const char *agent, const char *authority, struct acme_error *f);
void acme_http_close(struct acme_http *n);

/* Returns whether requests can be sent to the URL. */
bool acme_http_is_url(const char *url);

/* Sends GET or, if `message` is present, POST with that JWS. Returns false if there is no response. Free *r
 * in either case. */
bool acme_http_request(struct acme_http *n, const char *url, mk_str message, struct acme_response *r,
                       struct acme_error *f);
void acme_response_free(struct acme_response *r);

#endif
