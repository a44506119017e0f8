/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/handler.h"

#include <errno.h>

#include "unit/state_machine.h"

struct mk_worker {
    int unused;
};

struct mk_request {
    enum mk_method method;
    void *data;
    void (*on_end)(void *);
    void *end_ctx;
    int receives; /* result of receiving the body */
};

struct mk_response {
    unsigned status, failed_status;
    uint32_t reset_code;
    bool has_retry_after, has_trailer, has_source, has_static, is_tunnel;
    unsigned n_headers;
    const struct mk_body_source_ops *source;
    void *source_ctx;
};

struct mk_upstream_request {
    int polls[4]; /* results of successive calls to mk_upstream_request_poll() */
    unsigned n_polls, status;
    uint32_t reset_code;
    int64_t length;
    bool is_upgraded, is_buffered, is_freed, is_logged, is_spooled;
    ssize_t reads;
    struct mk_request *resumes;
    bool is_safe_to_repeat;
};

static struct mk_request request;
static struct mk_response response;
static struct mk_upstream_request upstream;
static struct mk_worker worker;
static bool lacks_memory;

/* ---- Fake server ---- */

bool mk_request_body_init(struct mk_request_body *b)
{
    return b->request == &request;
}

int mk_request_body_receive(struct mk_request_body *b)
{
    assert_true(b->is_readable);
    return request.receives;
}

int mk_request_add_cleanup(struct mk_request *r, void (*end)(void *), void *ctx)
{
    r->on_end = end;
    r->end_ctx = ctx;
    return 0;
}

void mk_request_set_data(struct mk_request *r, void *data)
{
    r->data = data;
}

void *mk_request_data(const struct mk_request *r)
{
    return r->data;
}

void mk_request_cancel_on_disconnect(struct mk_request *r)
{
    (void)r;
}

int mk_request_set_handler_timeout(struct mk_request *r, uint32_t ms)
{
    (void)r;
    assert_int_equal(ms, MK_FOREVER);
    return 0;
}

enum mk_method mk_request_method(const struct mk_request *r)
{
    return r->method;
}

mk_str mk_request_method_name(const struct mk_request *r)
{
    return r->method == MK_METHOD_POST ? MK_STR("POST") : MK_STR("GET");
}

const struct mk_addr *mk_request_client_addr(const struct mk_request *r)
{
    (void)r;
    return NULL;
}

struct mk_worker *mk_request_worker(const struct mk_request *r)
{
    (void)r;
    return &worker;
}

void mk_request_resume(struct mk_request *r)
{
    (void)r;
}

int mk_request_add_context(struct mk_request *r)
{
    (void)r;
    return 0;
}

void mk_request_set_reason(struct mk_request *r, const char *reason)
{
    (void)r;
    (void)reason;
}

unsigned mk_spool_status(int error)
{
    return error == -EMSGSIZE ? 413 : 500;
}

int mk_response_set_status(struct mk_response *r, unsigned status)
{
    r->status = status;
    return 0;
}

int mk_response_add_header(struct mk_response *r, mk_str name, mk_str value)
{
    (void)name, (void)value;
    r->n_headers++;
    return lacks_memory ? -ENOMEM : 0;
}

int mk_response_add_default(struct mk_response *r, mk_str name, mk_str value)
{
    (void)value;
    r->has_retry_after |= mk_str_eq(name, MK_STR("Retry-After"));
    return 0;
}

int mk_response_add_trailer(struct mk_response *r, mk_str name, mk_str value)
{
    (void)name, (void)value;
    r->has_trailer = true;
    return 0;
}

int mk_response_set_body_nocopy(struct mk_response *r, mk_str text)
{
    (void)text;
    r->has_static = true;
    return 0;
}

int mk_response_set_body_source(struct mk_response *r, const struct mk_body_source_ops *ops, void *ctx,
                                int64_t length)
{
    (void)length;
    r->has_source = true;
    r->source = ops;
    r->source_ctx = ctx;
    return 0;
}

void mk_response_set_reset_code(struct mk_response *r, uint32_t code)
{
    r->reset_code = code;
}

uint32_t mk_upstream_request_reset_code(const struct mk_upstream_request *c)
{
    return c->reset_code;
}

int mk_response_fail(struct mk_response *r, unsigned status)
{
    r->failed_status = status;
    return 0;
}

int mk_response_open_tunnel(struct mk_request *r, struct mk_response *to, const struct mk_tunnel_ops *ops,
                            void *ctx)
{
    (void)r, (void)ops, (void)ctx;
    to->is_tunnel = true;
    return 0;
}

/* ---- Fake backend ---- */

struct mk_upstream_request *mk_upstream_request_start_sized(struct mk_worker *w,
                                                            const struct mk_upstream_request_options *options,
                                                            size_t options_size, void (*on_ready)(void *ctx),
                                                            void *ctx)
{
    (void)w, (void)ctx, (void)options_size;
    assert_null(on_ready);
    upstream.resumes = options->resumes;
    upstream.is_safe_to_repeat = options->is_idempotent;
    return lacks_memory ? NULL : &upstream;
}

void mk_upstream_request_free(struct mk_upstream_request *u)
{
    if (u)
        u->is_freed = true;
}

int mk_upstream_request_poll(struct mk_upstream_request *u, struct mk_request *r)
{
    (void)r;
    return u->polls[u->n_polls++];
}

unsigned mk_upstream_status_for_error(int error)
{
    return error == -ETIMEDOUT ? 504 : error == -EBUSY ? 503 : 502;
}

bool mk_upstream_request_header_at(const struct mk_upstream_request *u, size_t i, mk_str *name, mk_str *value)
{
    static const char *const names[] = {"X-A", "retry-after", "Set-Cookie", "Allow"};
    (void)u;
    if (i >= MK_LEN(names))
        return false;
    *name = mk_str_from_c(names[i]);
    *value = MK_STR("1");
    return true;
}

bool mk_upstream_request_is_upgraded(const struct mk_upstream_request *u)
{
    return u->is_upgraded;
}

unsigned mk_upstream_request_status(const struct mk_upstream_request *u)
{
    return u->status;
}

int64_t mk_upstream_request_length(const struct mk_upstream_request *u)
{
    return u->length;
}

bool mk_upstream_request_buffered_body(struct mk_upstream_request *u, mk_str *body)
{
    *body = MK_STR("body");
    return u->is_buffered;
}

void mk_upstream_request_spool(struct mk_upstream_request *u, struct mk_request *r)
{
    (void)r;
    u->is_spooled = true;
}

void mk_upstream_request_resume(struct mk_upstream_request *u)
{
    (void)u;
}

ssize_t mk_upstream_request_read(struct mk_upstream_request *u, char *buffer, size_t cap)
{
    (void)buffer, (void)cap;
    return u->reads;
}

bool mk_upstream_request_trailer_at(const struct mk_upstream_request *u, size_t i, mk_str *name,
                                    mk_str *value)
{
    (void)u, (void)name, (void)value;
    return i == 0;
}

void mk_upstream_request_log_error(const struct mk_upstream_request *u, struct mk_request *r)
{
    (void)u, (void)r;
    upstream.is_logged = true;
}

/* ---- Handler under test ---- */

static unsigned refused_with, n_interim, n_ended;
static bool is_replaced;

static unsigned make_request(struct mk_upstream_handler *h, struct mk_upstream_request_options *options)
{
    (void)h, (void)options;
    return refused_with;
}

static void on_interim(struct mk_upstream_handler *h)
{
    (void)h;
    n_interim++;
}

static bool replace(struct mk_upstream_handler *h, enum mk_verdict *verdict)
{
    (void)h;
    *verdict = MK_NEXT;
    return is_replaced;
}

static int copy_head(struct mk_upstream_handler *h)
{
    return mk_response_set_status(h->response, h->upstream->status);
}

static void on_end(struct mk_upstream_handler *h)
{
    (void)h;
    n_ended++;
}

static const struct mk_upstream_handler_ops ops = {.make_request = make_request,
                                                   .on_interim = on_interim,
                                                   .replace = replace,
                                                   .copy_head = copy_head,
                                                   .on_request_end = on_end};

static struct mk_upstream_handler handler;

static void setup(void)
{
    request = (struct mk_request){.method = MK_METHOD_GET};
    response = (struct mk_response){0};
    upstream = (struct mk_upstream_request){.status = 200, .length = 100, .reads = 50};
    handler =
        (struct mk_upstream_handler){.ops = &ops, .request = &request, .response = &response, .spools = true};
    refused_with = n_interim = n_ended = 0;
    is_replaced = lacks_memory = false;
}

static void end_request(void)
{
    request.on_end(request.end_ctx);
    assert_int_equal(handler.step.current, MK_HANDLER_DONE);
    assert_null(handler.upstream);
}

static void handler_waits_for_body_and_response_head(void **state)
{
    (void)state;
    request.receives = -EAGAIN;
    assert_int_equal(mk_upstream_handler_start(&handler), MK_WAIT);
    assert_int_equal(handler.step.current, MK_HANDLER_RECEIVE_BODY);
    assert_ptr_equal(mk_upstream_handler_of(&request), &handler);
    request.receives = 0;
    upstream.polls[0] = -EAGAIN;
    upstream.polls[1] = 1; /* an interim response arrives */
    assert_int_equal(mk_upstream_handler_run(&handler), MK_WAIT);
    assert_int_equal(handler.step.current, MK_HANDLER_WAIT_HEAD);
    assert_ptr_equal(upstream.resumes, &request);
    assert_int_equal(mk_upstream_handler_run(&handler), MK_DONE);
    assert_int_equal(handler.step.current, MK_HANDLER_BODY);
    assert_true(response.status == 200 && response.has_source && upstream.is_spooled && n_interim == 1);
    assert_true(upstream.is_safe_to_repeat && !handler.body.is_readable);
    end_request();
    assert_true(upstream.is_freed && n_ended == 1);
}

static void handler_reads_body_and_trailers(void **state)
{
    char buffer[100];
    (void)state;
    request.method = MK_METHOD_POST;
    assert_int_equal(mk_upstream_handler_start(&handler), MK_DONE);
    assert_false(upstream.is_safe_to_repeat);
    assert_int_equal(response.source->read(response.source_ctx, buffer, sizeof buffer), 50);
    assert_false(response.has_trailer);
    upstream.reads = 0;
    assert_int_equal(response.source->read(response.source_ctx, buffer, sizeof buffer), 0);
    assert_true(response.has_trailer);
    end_request();
    assert_int_equal(response.source->read(response.source_ctx, buffer, sizeof buffer), -EPIPE);
}

static void handler_truncated_body_fails_response(void **state)
{
    char buffer[100];
    (void)state;
    assert_int_equal(mk_upstream_handler_start(&handler), MK_DONE);
    upstream.reads = -ETIMEDOUT;
    assert_int_equal(response.source->read(response.source_ctx, buffer, sizeof buffer), -ETIMEDOUT);
    assert_true(response.failed_status == 504 && upstream.is_logged);
    end_request();
}

static void handler_sends_small_body_with_head(void **state)
{
    (void)state;
    static const struct {
        enum mk_method method;
        unsigned status;
        int64_t length;
        bool is_buffered, is_static;
    } cases[] = {
        {MK_METHOD_GET, 200, 4, true, true},  {MK_METHOD_GET, 200, 4, false, false},
        {MK_METHOD_GET, 200, 0, false, true}, {MK_METHOD_HEAD, 200, 0, true, false},
        {MK_METHOD_GET, 304, 4, true, false}, {MK_METHOD_GET, 204, -1, true, false},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        setup();
        request.method = cases[i].method;
        upstream.status = cases[i].status;
        upstream.length = cases[i].length;
        upstream.is_buffered = cases[i].is_buffered;
        assert_int_equal(mk_upstream_handler_start(&handler), MK_DONE);
        assert_true(response.has_static == cases[i].is_static && response.has_source != cases[i].is_static);
        end_request();
    }
}

static void handler_maps_failures_to_statuses(void **state)
{
    (void)state;
    static const struct {
        int receives, polls;
        unsigned refused_with;
        bool lacks_memory;
        unsigned status;
    } cases[] = {
        {-EMSGSIZE, 0, 0, false, 413},  {0, 0, 400, false, 400},     {0, 0, 0, true, 503},
        {0, -ETIMEDOUT, 0, false, 504}, {0, -EPROTO, 0, false, 502}, {0, -EBUSY, 0, false, 503},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        setup();
        request.receives = cases[i].receives;
        upstream.polls[0] = cases[i].polls;
        refused_with = cases[i].refused_with;
        lacks_memory = cases[i].lacks_memory;
        assert_int_equal(mk_upstream_handler_start(&handler), MK_ERROR);
        assert_int_equal(response.status, cases[i].status);
        assert_int_equal(response.has_retry_after, cases[i].status == 503);
        assert_int_equal(handler.step.current, MK_HANDLER_DONE);
        assert_int_equal(mk_upstream_handler_run(&handler), MK_ERROR);
        end_request();
    }
}

static void handler_replaced_leaves_response_to_next_handler(void **state)
{
    (void)state;
    is_replaced = true;
    assert_int_equal(mk_upstream_handler_start(&handler), MK_NEXT);
    assert_true(upstream.is_freed && !mk_upstream_handler_of(&request) && response.status == 0);
    end_request();
}

static void handler_intercepts_listed_statuses(void **state)
{
    (void)state;
    static const struct mk_route_statuses only_404 = {{16}};
    handler.intercepts = &only_404;
    upstream.status = 404;
    upstream.reads = -EAGAIN;
    assert_int_equal(mk_upstream_handler_start(&handler), MK_WAIT); /* the body is discarded first */
    upstream.reads = 0;
    assert_int_equal(mk_upstream_handler_run(&handler), MK_ERROR);
    assert_int_equal(response.status, 404);
    assert_int_equal(response.n_headers, 2);
    assert_true(upstream.is_freed && n_ended == 1 && !response.has_source && !request.data);
    end_request();
}

static void handler_passes_other_statuses(void **state)
{
    (void)state;
    static const struct mk_route_statuses only_404 = {{16}};
    handler.intercepts = &only_404;
    upstream.status = 403;
    assert_int_equal(mk_upstream_handler_start(&handler), MK_DONE);
    assert_true(response.status == 403 && response.n_headers == 0);
    end_request();
}

static void handler_upgrade_opens_tunnel(void **state)
{
    (void)state;
    upstream.is_upgraded = true;
    assert_int_equal(mk_upstream_handler_start(&handler), MK_DONE);
    assert_true(response.is_tunnel && handler.body.upgrade == MK_REQUEST_BODY_UPGRADED &&
                handler.step.current == MK_HANDLER_TUNNEL);
    end_request();
}

static void handler_state_machine_responds_once(void **state)
{
    (void)state;
    expect_state_machine(&mk_upstream_handler_machine, "receive body: wait for head, done\n"
                                                       "wait for head: body, tunnel, done\n"
                                                       "body: done\n"
                                                       "tunnel: done\n"
                                                       "done: done\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(handler_waits_for_body_and_response_head, setup),
        fixture_test(handler_reads_body_and_trailers, setup),
        fixture_test(handler_truncated_body_fails_response, setup),
        fixture_test(handler_sends_small_body_with_head, setup),
        fixture_test(handler_maps_failures_to_statuses, setup),
        fixture_test(handler_replaced_leaves_response_to_next_handler, setup),
        fixture_test(handler_intercepts_listed_statuses, setup),
        fixture_test(handler_passes_other_statuses, setup),
        fixture_test(handler_upgrade_opens_tunnel, setup),
        cmocka_unit_test(handler_state_machine_responds_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
