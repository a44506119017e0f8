/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/handler.h"

#include <errno.h>

#include "upstream/request_type.h"

#define TO(step) MK_STATE_TO(MK_HANDLER_##step)

static const struct mk_state_table steps = {
    MK_STATE_ROW(MK_HANDLER_RECEIVE_BODY, "receive body", TO(WAIT_HEAD) | TO(DONE)),
    MK_STATE_ROW(MK_HANDLER_WAIT_HEAD, "wait for head", TO(BODY) | TO(TUNNEL) | TO(DONE)),
    MK_STATE_ROW(MK_HANDLER_BODY, "body", TO(DONE)),
    MK_STATE_ROW(MK_HANDLER_TUNNEL, "tunnel", TO(DONE)),
    MK_STATE_ROW(MK_HANDLER_DONE, "done", TO(DONE)), /* entered again when a rejected request ends */
};

static const char *state_problem(const void *owner)
{
    const struct mk_upstream_handler *h = owner;
    bool answers = h->step.current == MK_HANDLER_BODY || h->step.current == MK_HANDLER_TUNNEL;
    return answers && !h->upstream ? "it has a request to the backend" : NULL;
}

const struct mk_state_machine mk_upstream_handler_machine = {"upstream handler", &steps, MK_HANDLER_STEPS,
                                                             state_problem};

/* ---- Errors and completion ---- */

enum mk_verdict mk_upstream_handler_error(struct mk_response *response, unsigned status)
{
    mk_response_set_status(response, status);
    if (status == 503)
        (void)mk_response_add_default(response, MK_STR("Retry-After"), MK_STR("1"));
    return MK_ERROR;
}

/* Keeps the upstream request until the client's request ends: headers of the response may point into it. */
static enum mk_verdict handler_error(struct mk_upstream_handler *h, unsigned status)
{
    mk_upstream_handler_move(h, MK_HANDLER_DONE);
    return h->ops->respond_with_error ? h->ops->respond_with_error(h, status)
                                      : mk_upstream_handler_error(h->response, status);
}

static void handler_on_end(void *ctx)
{
    struct mk_upstream_handler *h = ctx;
    mk_upstream_handler_move(h, MK_HANDLER_DONE);
    mk_upstream_request_free(h->upstream);
    h->upstream = NULL;
    if (h->ops->on_request_end)
        h->ops->on_request_end(h);
}

static void handler_set_reason(struct mk_upstream_handler *h, int error)
{
    unsigned status = mk_upstream_status_for_error(error);
    if (status >= 502)
        mk_request_set_reason(h->request, status == 504   ? "upstream_timeout"
                                          : status == 503 ? "upstream_unavailable"
                                                          : "upstream_failed");
}

/* ---- The body of the response ---- */

static void handler_add_trailers(struct mk_upstream_handler *h)
{
    mk_str name, value;
    for (size_t i = 0; mk_upstream_request_trailer_at(h->upstream, i, &name, &value); i++)
        (void)mk_response_add_trailer(h->response, name, value);
}

static ssize_t handler_fail_body(struct mk_upstream_handler *h, ssize_t e)
{
    mk_upstream_request_log_error(h->upstream, h->request);
    handler_set_reason(h, (int)e);
    (void)mk_response_fail(h->response, mk_upstream_status_for_error((int)e));
    mk_response_set_reset_code(h->response, mk_upstream_request_reset_code(h->upstream));
    return e;
}

static ssize_t handler_read(struct mk_upstream_handler *h, char *buf, size_t cap)
{
    if (!h->upstream)
        return -EPIPE;
    if (h->step.current == MK_HANDLER_BODY)
        mk_upstream_request_resume(h->upstream); /* the backend may respond before it has read the whole
                                                  * request body */
    ssize_t n = mk_upstream_request_read(h->upstream, buf, cap);
    if (n == 0)
        handler_add_trailers(h);
    return n >= 0 || n == -EAGAIN ? n : handler_fail_body(h, n);
}

static ssize_t handler_source_read(void *ctx, char *buf, size_t cap)
{
    struct mk_upstream_handler *h = ctx;
    h->body.is_readable = true;
    ssize_t n = handler_read(h, buf, cap);
    h->body.is_readable = false;
    return n;
}

static const struct mk_body_source_ops response_body = {.read = handler_source_read};

/* A small body that arrived with the head is sent along with the head, and the connection to the backend is
 * released immediately. Body and headers are not copied: they stay in the upstream request, which lives until
 * the client's request ends. */
static int handler_set_body(struct mk_upstream_handler *h)
{
    unsigned status = mk_upstream_request_status(h->upstream);
    int64_t length = mk_upstream_request_length(h->upstream);
    bool is_head = mk_request_method(h->request) == MK_METHOD_HEAD;
    mk_str all;
    if (!is_head && status != 204 && status != 304 && mk_upstream_request_buffered_body(h->upstream, &all)) {
        if (MK_UNLIKELY(h->upstream->trailers.len))
            handler_add_trailers(h);
        return mk_response_set_body_nocopy(h->response, all);
    }
    if (!is_head && length == 0)
        return mk_response_set_body_nocopy(h->response, MK_STR(""));
    if (h->spools)
        mk_upstream_request_spool(h->upstream, h->request);
    return mk_response_set_body_source(h->response, &response_body, h, length);
}

/* ---- Tunnels ---- */

static bool handler_on_tunnel_input(void *ctx, bool has_input)
{
    struct mk_upstream_handler *h = ctx;
    h->body.is_readable = true;
    if (has_input && h->upstream)
        mk_upstream_request_resume(h->upstream);
    h->body.is_readable = false;
    return h->upstream;
}

static const struct mk_tunnel_ops tunnel = {.source = {.read = handler_source_read},
                                            .on_input = handler_on_tunnel_input};

static enum mk_verdict handler_open_tunnel(struct mk_upstream_handler *h)
{
    mk_upstream_handler_move(h, MK_HANDLER_TUNNEL);
    h->body.upgrade = MK_REQUEST_BODY_UPGRADED;
    if (h->ops->copy_head(h))
        return handler_error(h, 503);
    return mk_response_open_tunnel(h->request, h->response, &tunnel, h) ? MK_ERROR : MK_DONE;
}

/* ---- The head of the response ---- */

/* Leaves the response to the server, which calls another handler, possibly for another path, or sends an
 * error page. */
static enum mk_verdict handler_decline(struct mk_upstream_handler *h, enum mk_verdict verdict)
{
    if (verdict == MK_WAIT)
        return verdict;
    handler_on_end(h);
    mk_request_set_data(h->request, NULL);
    return verdict;
}

/* ---- Error pages of this server in place of the backend's ---- */

enum { DISCARDED_MAX = 64 * 1024 };

/* The headers that tell the client what to do about the error. Copied, because the upstream request ends
 * before the response is sent. */
static int handler_copy_error_headers(struct mk_upstream_handler *h)
{
    static const mk_str names[] = {MK_STR_INIT("Retry-After"), MK_STR_INIT("WWW-Authenticate"),
                                   MK_STR_INIT("Allow")};
    mk_str name, value;
    int e = 0;
    for (size_t i = 0; e != -ENOMEM && mk_upstream_request_header_at(h->upstream, i, &name, &value); i++)
        for (size_t k = 0; k < MK_LEN(names); k++)
            if (mk_str_eq_nocase(name, names[k]))
                e = mk_response_add_header(h->response, name, value);
    return e == -ENOMEM ? e : 0;
}

/* Discards the backend's page, so that its connection can be reused; of a long page only the beginning. Then
 * the server writes its own. */
MK_COLD static enum mk_verdict handler_intercept(struct mk_upstream_handler *h)
{
    char buf[4096];
    int64_t length = mk_upstream_request_length(h->upstream);
    ssize_t n = length > DISCARDED_MAX && mk_request_method(h->request) != MK_METHOD_HEAD ? 0 : 1;
    while (n > 0 && h->discarded < DISCARDED_MAX &&
           (n = mk_upstream_request_read(h->upstream, buf, sizeof buf)) > 0)
        h->discarded += (size_t)n;
    if (n == -EAGAIN && h->discarded < DISCARDED_MAX)
        return MK_WAIT;
    unsigned status = handler_copy_error_headers(h) ? 503 : mk_upstream_request_status(h->upstream);
    if (h->ops->respond_with_error)
        return handler_error(h, status);
    (void)mk_response_set_status(h->response, status);
    return handler_decline(h, MK_ERROR);
}

static bool handler_is_intercepted(const struct mk_upstream_handler *h)
{
    return MK_UNLIKELY(h->intercepts != NULL) &&
           mk_route_statuses_have(h->intercepts, mk_upstream_request_status(h->upstream));
}

static enum mk_verdict handler_read_head(struct mk_upstream_handler *h)
{
    enum mk_verdict verdict;
    int e;
    while ((e = mk_upstream_request_poll(h->upstream, h->request)) == 1)
        if (h->ops->on_interim)
            h->ops->on_interim(h);
    if (e == -EAGAIN)
        return MK_WAIT;
    if (e) {
        handler_set_reason(h, e);
        return handler_error(h, mk_upstream_status_for_error(e));
    }
    if (mk_upstream_request_is_upgraded(h->upstream))
        return handler_open_tunnel(h);
    if (h->ops->replace && h->ops->replace(h, &verdict))
        return handler_decline(h, verdict);
    if (handler_is_intercepted(h))
        return handler_intercept(h);
    mk_upstream_handler_move(h, MK_HANDLER_BODY);
    return h->ops->copy_head(h) || handler_set_body(h) ? handler_error(h, 503) : MK_DONE;
}

/* ---- The request ---- */

static enum mk_verdict handler_start(struct mk_upstream_handler *h)
{
    struct mk_upstream_request_options options = {
        .method = mk_request_method_name(h->request),
        .is_idempotent = mk_method_is_idempotent(mk_request_method(h->request)),
        .conn = {.server = -1, .client = mk_request_client_addr(h->request), .request = h->request},
        .on_stderr = h->ops->on_error_text,
        .resumes = h->request,
    };
    unsigned status = h->ops->make_request(h, &options);
    if (status)
        return handler_error(h, status);
    h->upstream = mk_upstream_request_start(mk_request_worker(h->request), &options, NULL, h);
    if (!h->upstream)
        return handler_error(h, 503);
    mk_upstream_handler_move(h, MK_HANDLER_WAIT_HEAD);
    if (h->ops->on_start)
        h->ops->on_start(h, &options);
    return handler_read_head(h);
}

static enum mk_verdict handler_receive_body(struct mk_upstream_handler *h)
{
    int e = mk_request_body_receive(&h->body);
    if (e == -EAGAIN)
        return MK_WAIT;
    return e ? handler_error(h, mk_spool_status(e)) : handler_start(h);
}

static enum mk_verdict handler_advance(struct mk_upstream_handler *h)
{
    if (h->step.current == MK_HANDLER_RECEIVE_BODY)
        return handler_receive_body(h);
    return h->step.current == MK_HANDLER_WAIT_HEAD ? handler_read_head(h) : MK_ERROR;
}

enum mk_verdict mk_upstream_handler_run(struct mk_upstream_handler *h)
{
    h->body.is_readable = true;
    enum mk_verdict verdict = handler_advance(h);
    h->body.is_readable = false;
    return verdict;
}

enum mk_verdict mk_upstream_handler_start(struct mk_upstream_handler *h)
{
    h->body.request = h->request;
    if (!mk_request_body_init(&h->body) || mk_request_add_cleanup(h->request, handler_on_end, h))
        return mk_upstream_handler_error(h->response, 503);
    mk_request_set_data(h->request, h);
    mk_request_cancel_on_disconnect(h->request);
    (void)mk_request_set_handler_timeout(h->request, MK_FOREVER); /* the route has its own timeouts */
    return mk_upstream_handler_run(h);
}
