/* SPDX-License-Identifier: Apache-2.0 */
/* An upstream server sends any bytes, over any protocol, split anywhere: the request ends, its connection is
 * released exactly once, and the result does not depend on how the bytes were split. */
#include "base/assert.h"

/* The fakes of the unit tests, without cmocka. */
#define MK_UNIT_TEST_H
#define assert_true(x)         MK_ASSERT(x)
#define assert_false(x)        MK_ASSERT(!(x))
#define assert_non_null(x)     MK_ASSERT((x) != NULL)
#define assert_int_equal(a, b) MK_ASSERT((a) == (b))

#include "unit/upstream/request_case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 16 * 1024, FACTS = 4 };

struct plan {
    enum mk_upstream_protocol protocol;
    bool head, upgrade, kept, held;
    int in_end;
    size_t read_size;
    bool is_slow; /* the caller reads only once everything has arrived */
};

/* The result of a request. `text` has its heads, body, trailers and errors, concatenated. */
struct result {
    int end;
    enum mk_upstream_conn_disposition how;
    struct mk_buf text;
};

static void keep(struct result *r, const struct mk_buf *part)
{
    mk_buf_add(&r->text, mk_buf_str(part));
    mk_buf_add_char(&r->text, '\n');
}

static void prepare(struct call *call, const struct plan *plan, mk_str in)
{
    fake_init();
    call_init(call);
    for (int i = 0; i < 2; i++) {
        struct mk_upstream_conn *l = fake_add(in, plan->in_end);
        l->is_gradual = true;
        l->was_kept = plan->kept && i == 0;
    }
    call->read_size = plan->read_size;
    call->spools = call->is_paused = plan->is_slow;
    fake.request = (struct mk_request *)call; /* never dereferenced */
    spool.space = plan->read_size * 10;
    call->ask.protocol = plan->protocol;
    call->ask.limits.response_timeout_ms = 1000;
    if (plan->head)
        call->ask.method = MK_STR("HEAD");
    if (plan->upgrade && plan->protocol == MK_UPSTREAM_PROTOCOL_HTTP)
        call->ask.upgrade = MK_STR("websocket");
    if (plan->held && !plan->upgrade) {
        call_send(call, MK_STR("hello"), plan->protocol != MK_UPSTREAM_PROTOCOL_HTTP || plan->head);
        call->ask.expects_continue = true;
    }
}

static struct result play(const struct plan *plan, mk_str in, size_t first, size_t size)
{
    struct result r = {.text = mk_buf_growing(1 << 20)};
    struct call call;
    prepare(&call, plan, in);
    call_run(&call, first, size);
    if (plan->is_slow) {
        fake_pass(250);
        call_settle(&call);
        call.is_paused = false;
        call.is_ready = true;
        call_settle(&call);
    }
    fake_pass(5000);
    call_settle(&call);
    MK_ASSERT(call.head != -EAGAIN || plan->in_end == -EAGAIN);
    MK_ASSERT(call.head != 0 || (mk_upstream_request_status(call.client) >= 101 &&
                                 mk_upstream_request_status(call.client) <= 599));
    MK_ASSERT(call.body.len <= in.len && call.trailers.len <= in.len && call.errors.len <= 2 * in.len);
    r.end = call.head ? call.head : (int)call.end;
    const struct mk_buf *facts[FACTS] = {&call.heads, &call.body, &call.trailers, &call.errors};
    for (int i = 0; i < FACTS; i++)
        keep(&r, facts[i]);
    struct mk_upstream_conn *last = call_link();
    call_fini(&call);
    r.how = last->how;
    return r;
}

/* The first bytes select the request, how the response ends, and where it is split. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int ends[] = {-EAGAIN, 0, -ECONNRESET, -EPIPE};
    static const size_t sizes[] = {1, 7, 4096, CALL_READ_MAX};
    if (size < 3 || size > INPUT_MAX)
        return 0;
    struct plan plan = {.protocol = (enum mk_upstream_protocol)(data[0] & 3),
                        .head = data[0] >> 2 & 1,
                        .upgrade = data[0] >> 3 & 1,
                        .kept = data[0] >> 4 & 1,
                        .held = data[0] >> 5 & 1,
                        .in_end = ends[data[1] & 3],
                        .read_size = sizes[data[1] >> 2 & 3]};
    mk_str in = mk_str_of((const char *)data + 3, size - 3);
    struct result whole = play(&plan, in, SIZE_MAX, SIZE_MAX);
    struct result pieces = play(&plan, in, data[2] + 1u, data[2] % 13u + 1);
    MK_ASSERT((whole.end == 0) == (pieces.end == 0) && (whole.end == -EAGAIN) == (pieces.end == -EAGAIN));
    MK_ASSERT(mk_str_eq(mk_buf_str(&whole.text), mk_buf_str(&pieces.text)));
    plan.is_slow = true;
    struct result late = play(&plan, in, data[2] + 1u, data[2] % 13u + 1);
    MK_ASSERT((whole.end == 0) == (late.end == 0) && (whole.end == -EAGAIN) == (late.end == -EAGAIN));
    MK_ASSERT(mk_str_eq(mk_buf_str(&whole.text), mk_buf_str(&late.text)));
    mk_buf_free(&late.text);
    MK_ASSERT(whole.how != MK_UPSTREAM_CONN_KEEP || (pieces.how == MK_UPSTREAM_CONN_KEEP && pieces.end == 0));
    mk_buf_free(&whole.text);
    mk_buf_free(&pieces.text);
    return 0;
}
