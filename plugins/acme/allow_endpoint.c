/* SPDX-License-Identifier: Apache-2.0 */
#include "allow_endpoint.h"

#include <errno.h>
#include <monkey/upstream.h>
#include <monkey/version.h>
#include <stdio.h>

enum { KEEPALIVE = 4, TIMEOUT_MS = 5000, OK_STATUS = 200, FIRST_FAILURE = 500 };

/* ---- The configuration ---- */

void acme_allow_endpoint_open(struct mk_config *config, struct acme_settings *s)
{
    struct mk_upstream_url url;
    int e = mk_upstream_parse_url(s->endpoint, &url);
    if (e) {
        mk_config_error(config, s, "AllowEndpoint", "%s",
                        e == -EINVAL ? "the server must not be empty, and the path must begin with `/`"
                                     : "expected `http://SERVER/PATH` or `https://SERVER/PATH`");
        return;
    }
    struct mk_upstream_defaults defaults = {
        .port = url.tls ? 443 : 80, .tls = url.tls, .keepalive = KEEPALIVE};
    s->endpoint_host = url.authority;
    s->endpoint_target = url.target;
    s->endpoint_upstream = mk_upstream_open(config, s, "AllowEndpoint", url.server, &defaults);
}

/* ---- Questions ---- */

struct acme_question {
    struct mk_upstream_request *upstream;
    struct mk_timer timer; /* the first look, in case the request has failed at once */
    void (*on_answer)(void *ctx, enum acme_answer answer, const char *text);
    void *ctx;
    struct mk_buf target;
};

void acme_question_free(struct acme_question *q)
{
    if (!q)
        return;
    mk_timer_stop(&q->timer);
    mk_upstream_request_free(q->upstream);
    mk_buf_free(&q->target);
    mk_mem_free(q);
}

static void on_ready(void *ctx)
{
    struct acme_question *q = ctx;
    char text[32];
    mk_str ignored;
    int e;
    while ((e = mk_upstream_request_head(q->upstream)) == 1) /* an interim response */
        continue;
    if (e == -EAGAIN)
        return;
    if (e) {
        q->on_answer(q->ctx, ACME_NO_ANSWER, mk_upstream_request_error_text(q->upstream));
        return;
    }
    unsigned status = mk_upstream_request_status(q->upstream);
    (void)mk_upstream_request_buffered_body(q->upstream,
                                            &ignored); /* the connection can then be used again */
    (void)snprintf(text, sizeof text, "status %u", status);
    q->on_answer(q->ctx,
                 status == OK_STATUS       ? ACME_ALLOWED
                 : status >= FIRST_FAILURE ? ACME_NO_ANSWER
                                           : ACME_REFUSED,
                 text);
}

static void on_first_look(struct mk_timer *timer)
{
    on_ready(MK_CONTAINER(timer, struct acme_question, timer));
}

struct acme_question *
acme_question_ask(struct mk_worker *worker, const struct acme_settings *s, mk_str name,
                  void (*on_answer)(void *ctx, enum acme_answer answer, const char *text), void *ctx)
{
    struct acme_question *q = mk_mem_zalloc(1, sizeof *q);
    if (!q)
        return NULL;
    *q = (struct acme_question){.on_answer = on_answer, .ctx = ctx, .target = mk_buf_growing(8192)};
    bool has_query = mk_str_find(s->endpoint_target, '?') != MK_STR_NONE;
    mk_buf_addf(&q->target, "%.*s%cdomain=%.*s", MK_STR_ARG(s->endpoint_target), has_query ? '&' : '?',
                MK_STR_ARG(name));
    const struct mk_header headers[] = {{MK_STR("Host"), s->endpoint_host},
                                        {MK_STR("User-Agent"), MK_STR("monkey-acme/" MONKEY_VERSION)}};
    const struct mk_upstream_request_options o = {
        .upstream = s->endpoint_upstream,
        .method = MK_STR("GET"),
        .target = mk_buf_str(&q->target),
        .headers = headers,
        .n_headers = MK_LEN(headers),
        .is_idempotent = true,
        .limits = {.max_tries = 2, .read_timeout_ms = TIMEOUT_MS, .total_timeout_ms = TIMEOUT_MS},
    };
    q->upstream = q->target.failed ? NULL : mk_upstream_request_start(worker, &o, on_ready, q);
    mk_timer_init(&q->timer, on_first_look);
    if (q->upstream) {
        mk_timer_set(&q->timer, worker, 0);
        return q;
    }
    acme_question_free(q);
    return NULL;
}
