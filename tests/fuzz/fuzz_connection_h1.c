/* SPDX-License-Identifier: Apache-2.0 */
/* Sends bytes to a connection, split anywhere, with a peer that accepts the responses in any pieces: the
 * output is valid HTTP, with one response for each log record that has a status, in order. The first byte is
 * the length of a plan; each byte of the plan says how much arrives next and how much the peer accepts. */
#include "fuzz/server_fixture.h"
#include "unit/h1_response.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PLAN_MAX = 32, RECORDS_MAX = 64, OUT_MAX = 1 << 23, STEPS_MAX = 2000, NUMBER_MAX = 100000 };

static const struct mk_conn_manager_limits limits = {
    .head = {.head_max = 600, .target_max = 200, .fields_max = 16},
    .request.content_max = 2000,
    .request_max = 4000,
    .requests_max = 12,
    .connections_max = 4,
    .keep_alive = true,
    .head_ms = 100000,
    .idle_ms = 100000,
    .linger_ms = 100000,
    .request.tunnel_ms = 100000,
};

static char *output;
static size_t n_received;

static void on_received(mk_str bytes)
{
    MK_ASSERT(n_received + bytes.len <= OUT_MAX);
    memcpy(output + n_received, bytes.p, bytes.len);
    n_received += bytes.len;
}

/* ---- Log records ---- */

static struct {
    unsigned status;
    bool is_head;
    enum mk_outcome outcome;
} records[RECORDS_MAX];
static unsigned n_records;

static void on_done(const struct mk_access_record *record, void *data)
{
    (void)data;
    MK_ASSERT(n_records < RECORDS_MAX);
    records[n_records].status = record->status;
    records[n_records].is_head = record->request->target->method == MK_METHOD_HEAD;
    records[n_records++].outcome = record->outcome;
}

/* Responses must match the log records; only truncated responses may be missing or partial. */
static void check_answers(void)
{
    mk_str rest = mk_str_of(output, n_received);
    bool cut = false;
    for (unsigned i = 0; i < n_records; i++) {
        struct h1_response r;
        if (records[i].status == 0)
            continue;
        MK_ASSERT(!cut);
        enum h1_response_result got = h1_response_next(&r, &rest, records[i].is_head, true);
        MK_ASSERT(got != H1_RESPONSE_BAD);
        MK_ASSERT(got != H1_RESPONSE_COMPLETE || r.status == records[i].status);
        if (records[i].status == 101) /* after a 101, all bytes are tunnel data */
            rest = mk_str_skip(rest, rest.len);
        MK_ASSERT(got == H1_RESPONSE_COMPLETE || records[i].outcome == MK_OUTCOME_FAILED ||
                  records[i].outcome == MK_OUTCOME_CLIENT_ABORTED ||
                  records[i].outcome == MK_OUTCOME_TIMEOUT);
        cut = got != H1_RESPONSE_COMPLETE;
        h1_response_fini(&r);
    }
    /* A 100 response may precede the failure of its request. */
    while (mk_str_starts(rest, MK_STR("HTTP/1.1 100 Continue\r\n\r\n")))
        rest = mk_str_skip(rest, sizeof "HTTP/1.1 100 Continue\r\n\r\n" - 1);
    MK_ASSERT(rest.len == 0);
}

/* ---- The server ---- */

static void end(void)
{
    mk_mem_free(output);
}

static void begin(void)
{
    static char large[3000];
    server_begin(&limits, on_done);
    site_add(&site, "index.html.gz", MK_STR("gzip"));
    site_add(&site, "large", mk_str_of(large, sizeof large)); /* too large for the memory cache */
    output = mk_mem_alloc(OUT_MAX);
    MK_ASSERT(output != NULL);
    atexit(end);
}

/* Processes the available input, and runs the tasks of the loop. */
static void advance(struct mk_conn *c)
{
    mk_stream_on_input(&c->stream, false);
    c->ops->advance(c);
    for (int i = 0; i < STEPS_MAX && loop.tasks && !peer.closed; i++)
        mk_loop_run_tasks(&loop);
    check_at_rest(c);
}

static void play(struct mk_conn *c, const uint8_t *plan, size_t n)
{
    for (size_t i = 0; i < n && !peer.closed; i++) {
        peer.write_max = accept_sizes[plan[i] & 7];
        peer.arrived = mk_min(peer.arrived + (plan[i] >> 3), peer.sent.len);
        advance(c);
    }
    peer.write_max = SIZE_MAX;
    peer.arrived = peer.sent.len;
    for (int i = 0; i < 3 && !peer.closed; i++)
        advance(c);
    peer.ended = c->stream.ended = true;
    for (int i = 0; i < 3 && !peer.closed; i++)
        advance(c);
    for (int i = 0; i < 3 && !peer.closed; i++) { /* the timeout of a waiting connection expires */
        c->ops->on_timeout(c, (enum mk_conn_timeout)(c->timeout ? c->timeout : MK_TIMEOUT_HANDLER));
        check_at_rest(c);
    }
}

/* Excludes requests for bodies of a billion bytes, which only take time. */
static bool is_reasonable(mk_str in)
{
    uint64_t n = 0;
    for (size_t i = 0; i < in.len; i++) {
        n = mk_char_is_digit(in.p[i]) ? n * 10 + (uint64_t)(in.p[i] - '0') : 0;
        if (n > NUMBER_MAX)
            return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!output)
        begin();
    size_t n_plan = size ? data[0] % PLAN_MAX : 0;
    if (size < 1 + n_plan)
        return 0;
    memset(&peer, 0, sizeof peer);
    peer.sent = mk_str_of((const char *)data + 1 + n_plan, size - 1 - n_plan);
    if (!is_reasonable(peer.sent))
        return 0;
    n_received = n_records = 0;
    struct mk_conn *c = peer_connect();
    play(c, data + 1, n_plan);
    mk_conn_close_all(&manager, MK_OUTCOME_SHUTDOWN);
    mk_loop_run_tasks(&loop);
    MK_ASSERT(manager.n_conns == 0 && peer.closed);
    check_answers();
    return 0;
}
