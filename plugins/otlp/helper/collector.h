/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the collector, which run while the caller waits in otlp_collector_wait(). */
#ifndef OTLP_COLLECTOR_H
#define OTLP_COLLECTOR_H

#include <curl/curl.h>
#include <monkey/buf.h>

enum { OTLP_REPLY_MAX = 64 * 1024 };

struct otlp_collector {
    CURLM *multi;
    CURL *curl;
    struct curl_slist *headers;
    const char *url;
    struct mk_buf body; /* of the request */
    bool is_sending;
    size_t reply_len;
    bool is_reply_too_long;
    char reply[OTLP_REPLY_MAX + 1];
    char error[CURL_ERROR_SIZE];
};

/* The response to a request. */
struct otlp_reply {
    unsigned status;     /* 0: none */
    uint64_t retry_s;    /* Retry-After; 0: none */
    uint64_t n_rejected; /* of a partial success */
    const char *text;    /* why there is no response, or the beginning of its body */
};

bool otlp_collector_open(struct otlp_collector *c);
void otlp_collector_close(struct otlp_collector *c);
/* Starts to send c->body. */
bool otlp_collector_send(struct otlp_collector *c);
/* Waits until one of `n` descriptors (at most 2) is readable, a transfer advances, or `timeout_ms` has passed. Returns true if the
 * request is complete; *reply then describes the response until the next request. */
bool otlp_collector_wait(struct otlp_collector *c, const int *fds, unsigned n, int timeout_ms,
                         struct otlp_reply *reply);

#endif
