/* SPDX-License-Identifier: Apache-2.0 */
/* Responses that handlers produce faster than their clients read: order, memory, files, and the quotas for
 * both. */
#include <unistd.h>

#include "os/spool.h"
#include "unit/web/spooled_case.h"

enum { K = 1024, M = 1024 * K };

static unsigned n_woken;

static void setup(void)
{
    n_woken = 0;
    setup_spool();
}

static void setup_helper(void)
{
    n_woken = 0;
    setup_spool_with_thread();
}

static void on_room(void *ctx)
{
    (void)ctx;
    n_woken++;
}

static struct mk_exchange *get(unsigned client)
{
    struct mk_exchange *x = site_request(&site, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_non_null(x);
    x->request.peer = &others[client];
    return x;
}

static struct mk_spool_queue *new_queue(struct mk_exchange *x)
{
    struct mk_spool_queue *q = mk_spool_queue_new(&x->request, on_room, NULL);
    assert_non_null(q);
    return q;
}

static char byte_at(uint64_t at)
{
    return (char)('a' + at % 23);
}

/* Adds bytes up to this offset or until the queue is full. Returns the result of the last call. */
static int fill(struct mk_spool_queue *q, uint64_t *at, uint64_t end)
{
    while (*at < end) {
        char *buffer;
        size_t cap;
        int e = mk_spool_queue_reserve(q, &buffer, &cap);
        if (e)
            return e;
        assert_true(cap > 0);
        cap = mk_min(cap, (size_t)(end - *at));
        for (size_t i = 0; i < cap; i++)
            buffer[i] = byte_at(*at + i);
        mk_spool_queue_add(q, cap);
        *at += cap;
    }
    return 0;
}

static void read_piece(struct mk_spool_queue *q, uint64_t *at, uint64_t n, size_t piece)
{
    char buffer[16 * K];
    while (n) {
        ssize_t got = mk_spool_queue_read(q, buffer, mk_min(piece, n));
        assert_true(got > 0);
        for (ssize_t i = 0; i < got; i++)
            assert_int_equal(buffer[i], byte_at(*at + (uint64_t)i));
        *at += (uint64_t)got;
        n -= (uint64_t)got;
    }
}

static void spool_queue_keeps_order(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {1, 64 * K - 1, 64 * K, 64 * K + 1, 3 * M + 7};
    static const size_t pieces[] = {1000, 16 * K};
    for (size_t i = 0; i < MK_LEN(lengths) * MK_LEN(pieces); i++) {
        struct mk_exchange *x = get(0);
        struct mk_spool_queue *q = new_queue(x);
        uint64_t n = lengths[i / MK_LEN(pieces)], in = 0, out = 0;
        char none;
        assert_int_equal(mk_spool_queue_read(q, &none, 1), 0);
        assert_int_equal(fill(q, &in, n), 0);
        assert_true((site.web.spools.stored > 0) == (n > 64 * K));
        read_piece(q, &out, n, pieces[i % MK_LEN(pieces)]);
        assert_int_equal(mk_spool_queue_read(q, &none, 1), 0);
        assert_int_equal(site.web.spools.stored, 0); /* consumed data uses no space */
        mk_spool_queue_free(q);
        mk_exchange_free(x);
    }
}

static void spool_queue_keeps_order_with_interleaved_reads(void **state)
{
    (void)state;
    struct mk_exchange *x = get(0);
    struct mk_spool_queue *q = new_queue(x);
    uint64_t in = 0, out = 0;
    for (unsigned round = 0; round < 200; round++) {
        assert_int_equal(fill(q, &in, in + 1 + round * 977 % (50 * K)), 0);
        read_piece(q, &out, mk_min(in - out, 1 + round * 1301 % (40 * K)), 5000);
    }
    mk_spool_queue_free(q);
    mk_exchange_free(x);
}

static void spool_queue_memory_of_client_is_limited(void **state)
{
    (void)state;
    struct mk_exchange *x[8];
    struct mk_spool_queue *q[8];
    uint64_t in = 0;
    for (unsigned i = 0; i < 8; i++) {
        x[i] = get(0);
        q[i] = new_queue(x[i]);
        in = 0;
        assert_int_equal(fill(q[i], &in, 60 * K), 0);
        /* four clients have 64 KB each, the others 16 KB */
        assert_int_equal(site.web.spools.stored > 0, i >= 4);
    }
    for (unsigned i = 0; i < 8; i++) {
        mk_spool_queue_free(q[i]);
        mk_exchange_free(x[i]);
    }
}

static void spool_queue_disk_quotas_are_enforced(void **state)
{
    (void)state;
    static const unsigned clients[] = {0, 0, 1, 2};
    struct mk_exchange *x[4];
    struct mk_spool_queue *q[4];
    uint64_t in[4] = {0}, out = 0;
    site.web.spools.max = 4 * M;
    for (unsigned i = 0; i < 4; i++) {
        x[i] = get(clients[i]);
        q[i] = new_queue(x[i]);
    }
    assert_int_equal(fill(q[0], &in[0], 8 * M), -EDQUOT);
    assert_int_equal(in[0], M + 64 * K);
    assert_int_equal(fill(q[1], &in[1], 8 * M), -EDQUOT); /* this queue belongs to the same client */
    assert_int_equal(in[1], 64 * K);
    assert_int_equal(fill(q[2], &in[2], 8 * M), -EDQUOT);
    assert_int_equal(in[2], M + 64 * K);
    /* A client gets half of the total: the other half is reserved for requests. */
    assert_int_equal(fill(q[3], &in[3], 8 * M), -EDQUOT);
    assert_int_equal(site.web.spools.stored, 2 * M);
    read_piece(q[0], &out, M + 64 * K, 16 * K);
    assert_int_equal(fill(q[3], &in[3], 8 * M), -EDQUOT);
    assert_int_equal(in[3], M + 64 * K);
    for (unsigned i = 0; i < 4; i++) {
        mk_spool_queue_free(q[i]);
        mk_exchange_free(x[i]);
    }
}

/* A producer that pauses until the queue is empty would run into its own timeouts. */
static void spool_queue_full_accepts_after_partial_read(void **state)
{
    (void)state;
    struct mk_exchange *x = get(0);
    struct mk_spool_queue *q = new_queue(x);
    uint64_t in = 0, out = 0;
    site.web.spools.max = 16 * M;
    assert_int_equal(fill(q, &in, 100 * M), -EDQUOT);
    assert_int_equal(in, 4 * M + 64 * K);
    for (unsigned i = 0; i < 50; i++) {
        read_piece(q, &out, M, 16 * K);
        uint64_t before = in;
        assert_int_equal(fill(q, &in, 100 * M), -EDQUOT);
        assert_int_equal(in - before, M);
        assert_true(site.web.spools.stored <= 4 * M);
    }
    mk_spool_queue_free(q);
    mk_exchange_free(x);
}

static void spool_queue_without_folder_uses_memory(void **state)
{
    (void)state;
    struct mk_exchange *x = get(0);
    struct mk_spool_queue *q = new_queue(x);
    uint64_t in = 0, out = 0;
    site.web.spools.folder = NULL;
    assert_int_equal(fill(q, &in, M), -EDQUOT);
    assert_int_equal(in, 64 * K);
    read_piece(q, &out, 1000, 1000);
    assert_int_equal(fill(q, &in, M), -EDQUOT);
    assert_int_equal(in, 64 * K + 1000);
    mk_spool_queue_free(q);
    mk_exchange_free(x);
}

static void spool_queue_write_error_loses_nothing(void **state)
{
    (void)state;
    struct mk_exchange *x = get(0);
    struct mk_spool_queue *q = new_queue(x);
    uint64_t in = 0, out = 0;
    site.web.spools.folder = "/nowhere";
    assert_int_equal(fill(q, &in, M), -ENOENT);
    assert_int_equal(fill(q, &in, M), -ENOENT); /* the error is permanent */
    assert_int_equal(in, 64 * K);
    assert_int_equal(site.web.spools.stored, 0);
    read_piece(q, &out, 64 * K, 1000);
    mk_spool_queue_free(q);
    mk_exchange_free(x);
}

/* ---- With writer threads ---- */

static void spool_queue_reader_waits_for_thread(void **state)
{
    (void)state;
    struct mk_exchange *x = get(0);
    struct mk_spool_queue *q = new_queue(x);
    uint64_t in = 0, out = 0;
    char buffer[1000];
    assert_int_equal(fill(q, &in, M), -EAGAIN);
    assert_int_equal(mk_spool_queue_read(q, buffer, sizeof buffer), -EAGAIN);
    while (!n_woken)
        assert_int_equal(mk_loop_run_once(&loop, 1000), 0);
    assert_int_equal(fill(q, &in, M), -EAGAIN);
    read_piece(q, &out, 64 * K, 1000); /* the first part is already in the file */
    assert_int_equal(mk_spool_queue_read(q, buffer, sizeof buffer), -EAGAIN);
    while (n_woken < 2)
        assert_int_equal(mk_loop_run_once(&loop, 1000), 0);
    read_piece(q, &out, 64 * K, 1000);
    mk_spool_queue_free(q);
    mk_exchange_free(x);
}

static void spool_queue_may_be_freed_while_thread_writes(void **state)
{
    (void)state;
    struct mk_exchange *x = get(0);
    struct mk_spool_queue *q = new_queue(x);
    uint64_t in = 0;
    assert_int_equal(fill(q, &in, M), -EAGAIN);
    mk_spool_queue_free(q);
    mk_exchange_free(x);
    while (site.web.spools.stored)
        assert_int_equal(mk_loop_run_once(&loop, 1000), 0);
    assert_int_equal(n_woken, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(spool_queue_keeps_order, setup),
        fixture_test(spool_queue_keeps_order_with_interleaved_reads, setup),
        fixture_test(spool_queue_memory_of_client_is_limited, setup),
        fixture_test(spool_queue_disk_quotas_are_enforced, setup),
        fixture_test(spool_queue_full_accepts_after_partial_read, setup),
        fixture_test(spool_queue_without_folder_uses_memory, setup),
        fixture_test(spool_queue_write_error_loses_nothing, setup),
        fixture_test(spool_queue_reader_waits_for_thread, setup_helper),
        fixture_test(spool_queue_may_be_freed_while_thread_writes, setup_helper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
