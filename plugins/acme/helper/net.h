/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the authority: HTTPS only, bounded in time and size. The one file that knows libcurl. */
#ifndef ACME_NET_H
#define ACME_NET_H

#include "say.h"

enum { ACME_URL_MAX = 2048 };

struct acme_net;

/* A response. */
struct acme_reply {
    unsigned status;
    struct mk_buf body; /* at most 1 MB */
    char type[128];     /* of the content */
    char nonce[256];    /* Replay-Nonce; "": none */
    char location[ACME_URL_MAX];
    uint64_t retry_s; /* Retry-After, from now; 0: none */
    int64_t date;     /* the authority's clock; 0: unknown */
};

/* `authority`: a file of trusted authorities; NULL: those of the system. */
struct acme_net *acme_net_open(const char *agent, const char *authority, struct acme_fault *f);
void acme_net_close(struct acme_net *n);

/* Is the URL valid for requests? */
bool acme_net_is_url(const char *url);

/* GET, or POST of a JWS if `message` is there. False: no response. Free *r in either case. */
bool acme_net_ask(struct acme_net *n, const char *url, mk_str message, struct acme_reply *r,
                  struct acme_fault *f);
void acme_reply_free(struct acme_reply *r);

#endif
