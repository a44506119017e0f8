/* SPDX-License-Identifier: Apache-2.0 */
/* Buffered request bodies: the parts that stay in memory, the parts that go to a file, and the share of both
 * that one client gets. */
#include <unistd.h>

#include "os/spool.h"
#include "unit/web/spooled_case.h"

enum { K = 1024 };

/* A protocol with `left` bytes of the body available, followed by the result `ending`. */
struct wire {
    uint64_t left, at;
    mk_err ending;
    unsigned n_resumed;
};

static char byte_at(uint64_t at)
{
    return (char)('a' + at % 23);
}

static ssize_t on_read(void *ctx, char *buffer, size_t cap)
{
    struct wire *w = ctx;
    size_t n = mk_min(cap, w->left);
    for (size_t i = 0; i < n; i++)
        buffer[i] = byte_at(w->at + i);
    w->at += n;
    w->left -= n;
    return n ? (ssize_t)n : w->ending;
}

static void on_resume(void *ctx)
{
    ((struct wire *)ctx)->n_resumed++;
}

static const struct mk_request_ops ops = {.read = on_read, .resume = on_resume};

static struct mk_exchange *post(struct wire *w, uint64_t length)
{
    struct mk_exchange *x = site_request(&site, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n");
    assert_non_null(x);
    x->request.ops = &ops;
    x->request.ops_ctx = w;
    x->request.length = length;
    return x;
}

static void assert_content(struct mk_spool *s, uint64_t length)
{
    char buffer[1000];
    uint64_t at = 0;
    ssize_t n;
    assert_int_equal(mk_spool_length(s), length);
    while ((n = mk_spool_read(s, buffer, sizeof buffer, at)) > 0)
        for (ssize_t i = 0; i < n; i++)
            assert_int_equal(buffer[i], byte_at(at++));
    assert_int_equal(n, 0);
    assert_int_equal(at, length);
    assert_int_equal(lseek(mk_spool_fd(s), 0, SEEK_END), length);
}

static void request_spool_any_length_is_complete(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {0, 1, 255, 4096, 4097, 64 * K - 1, 64 * K, 64 * K + 1, 300 * K};
    for (size_t i = 0; i < 2 * MK_LEN(lengths); i++) {
        uint64_t n = lengths[i / 2];
        struct wire w = {.left = n};
        struct mk_spool *s;
        struct mk_exchange *x = post(&w, i % 2 ? n : MK_REQUEST_LENGTH_UNKNOWN);
        assert_int_equal(mk_spool_request(&x->request, 0, &s), 0);
        assert_true((site.web.spools.stored > 0) ==
                    (n + (i % 2 == 0) > 64 * K)); /* a byte of buffer is needed to detect the end */
        assert_content(s, n);
        mk_exchange_free(x);
    }
}

static void request_spool_waits_for_body(void **state)
{
    (void)state;
    struct wire w = {.left = 100 * K, .ending = -EAGAIN};
    struct mk_spool *s, *again;
    struct mk_exchange *x = post(&w, MK_REQUEST_LENGTH_UNKNOWN);
    assert_int_equal(mk_spool_request(&x->request, 0, &s), -EAGAIN);
    assert_int_equal(mk_spool_request(&x->request, 0, &s), -EAGAIN);
    w.left = 10;
    w.ending = 0;
    assert_int_equal(mk_spool_request(&x->request, 0, &s), 0);
    assert_int_equal(mk_spool_request(&x->request, 0, &again), 0);
    assert_ptr_equal(s, again);
    assert_content(s, 100 * K + 10);
    mk_exchange_free(x);
}

static void request_spool_error_is_permanent_and_frees_all(void **state)
{
    (void)state;
    static const mk_err errors[] = {-EMSGSIZE, -EBADMSG, -ECONNRESET};
    for (size_t i = 0; i < MK_LEN(errors); i++) {
        struct wire w = {.left = 100 * K, .ending = errors[i]};
        struct mk_spool *s;
        struct mk_exchange *x = post(&w, MK_REQUEST_LENGTH_UNKNOWN);
        assert_int_equal(mk_spool_request(&x->request, 0, &s), errors[i]);
        assert_int_equal(site.web.spools.stored, 0);
        assert_int_equal(mk_spool_request(&x->request, 0, &s), errors[i]);
        mk_exchange_free(x);
    }
}

static void request_spool_caller_limit_is_enforced(void **state)
{
    (void)state;
    struct wire w = {.left = 101};
    struct mk_spool *s;
    struct mk_exchange *x = post(&w, MK_REQUEST_LENGTH_UNKNOWN);
    assert_int_equal(mk_spool_request(&x->request, 100, &s), -EMSGSIZE);
    mk_exchange_free(x);
}

static void request_spool_without_folder_uses_memory(void **state)
{
    (void)state;
    struct wire w = {.left = 64 * K}, more = {.left = 65 * K};
    struct mk_spool *s;
    site.web.spools.folder = NULL;
    struct mk_exchange *x = post(&w, w.left), *y = post(&more, more.left);
    assert_int_equal(mk_spool_request(&x->request, 0, &s), 0);
    assert_int_equal(mk_spool_request(&y->request, 0, &s), -EOPNOTSUPP);
    assert_int_equal(mk_spool_status(-EOPNOTSUPP), 500);
    mk_exchange_free(x);
    mk_exchange_free(y);
}

static void request_spool_folder_error_is_logged(void **state)
{
    (void)state;
    struct wire w = {.left = 65 * K};
    struct mk_spool *s;
    site.web.spools.folder = "/nowhere/at/all";
    struct mk_exchange *x = post(&w, w.left);
    assert_int_equal(mk_spool_request(&x->request, 0, &s), -ENOENT);
    assert_non_null(strstr(site.logged, "/nowhere/at/all: No such file"));
    mk_exchange_free(x);
}

static void request_spool_client_gets_half_of_disk_quota(void **state)
{
    (void)state;
    struct wire w[4] = {{.left = 100 * K}, {.left = 100 * K}, {.left = 100 * K}, {.left = 100 * K}};
    struct mk_exchange *x[4];
    struct mk_spool *s;
    site.web.spools.max = 300 * K;
    for (size_t i = 0; i < 4; i++)
        x[i] = post(&w[i], w[i].left);
    x[0]->request.peer = x[1]->request.peer = &others[0];
    x[2]->request.peer = &others[1];
    x[3]->request.peer = &others[2];
    assert_int_equal(mk_spool_request(&x[0]->request, 0, &s), 0);
    assert_int_equal(mk_spool_request(&x[1]->request, 0, &s), -EDQUOT);
    assert_non_null(strstr(site.logged, "SpoolMax"));
    assert_int_equal(mk_spool_request(&x[2]->request, 0, &s), 0);
    assert_int_equal(mk_spool_request(&x[3]->request, 0, &s), 0);
    mk_exchange_free(x[3]);
    x[3] = post(&(struct wire){.left = 100 * K}, 100 * K);
    x[3]->request.peer = &others[2];
    assert_int_equal(mk_spool_request(&x[3]->request, 0, &s), 0);
    for (size_t i = 0; i < 4; i++)
        mk_exchange_free(x[i]);
}

/* An HTTP/2 connection has up to 100 concurrent requests. */
static void request_spool_memory_of_client_is_limited(void **state)
{
    (void)state;
    struct wire w[100];
    struct mk_exchange *x[100];
    struct mk_spool *s;
    size_t kept = 0;
    for (size_t i = 0; i < 100; i++) {
        w[i] = (struct wire){.left = 60 * K};
        x[i] = post(&w[i], w[i].left);
        assert_int_equal(mk_spool_request(&x[i]->request, 0, &s), 0);
        kept += s->kept.cap;
        assert_content(s, 60 * K);
    }
    assert_in_range(kept, 100 * K, 700 * K);
    for (size_t i = 0; i < 100; i++)
        mk_exchange_free(x[i]);
}

static void request_spool_freed_spool_returns_quota(void **state)
{
    (void)state;
    struct wire w = {.left = 100 * K}, other = {.left = 100 * K};
    struct mk_spool *s;
    site.web.spools.max = 220 * K;
    struct mk_exchange *x = post(&w, w.left), *y = post(&other, other.left);
    assert_int_equal(mk_spool_request(&x->request, 0, &s), 0);
    mk_spool_free(s);
    assert_int_equal(mk_spool_request(&x->request, 0, &s), -EINVAL);
    assert_int_equal(mk_spool_request(&y->request, 0, &s), 0);
    mk_exchange_free(x);
    mk_exchange_free(y);
}

static void request_spool_rewrite_drops_body(void **state)
{
    (void)state;
    struct wire w = {.left = 100 * K};
    struct mk_spool *s;
    struct mk_exchange *x = post(&w, w.left);
    assert_int_equal(mk_spool_request(&x->request, 0, &s), 0);
    x->request.length = 0;
    assert_int_equal(mk_spool_request(&x->request, 0, &s), 0);
    assert_content(s, 0);
    mk_exchange_free(x);
}

/* ---- With a writer thread ---- */

static void request_spool_reads_nothing_while_thread_writes(void **state)
{
    (void)state;
    struct wire w = {.left = 200 * K};
    struct mk_spool *s;
    struct mk_exchange *x = post(&w, w.left);
    int e;
    while ((e = mk_spool_request(&x->request, 0, &s)) == -EAGAIN) {
        uint64_t at = w.at;
        unsigned n = w.n_resumed;
        assert_int_equal(mk_spool_request(&x->request, 0, &s), -EAGAIN);
        assert_int_equal(w.at, at);
        while (w.n_resumed == n)
            assert_int_equal(mk_loop_run_once(&loop, 1000), 0);
    }
    assert_int_equal(e, 0);
    assert_int_equal(w.n_resumed, 4);
    assert_content(s, 200 * K);
    mk_exchange_free(x);
}

static void request_spool_request_may_end_while_thread_writes(void **state)
{
    (void)state;
    struct wire w = {.left = 200 * K};
    struct mk_spool *s;
    struct mk_exchange *x = post(&w, w.left);
    assert_int_equal(mk_spool_request(&x->request, 0, &s), -EAGAIN);
    mk_exchange_free(x); /* stop_thread() waits for the thread, which has nothing left to do */
    assert_int_equal(w.n_resumed, 0);
}

static void request_spool_errors_map_to_statuses(void **state)
{
    (void)state;
    static const struct {
        int error;
        unsigned status;
    } cases[] = {{-EMSGSIZE, 413}, {-EBADMSG, 400}, {-ECONNRESET, 400}, {-ENOSPC, 507}, {-EDQUOT, 503},
                 {-ENOMEM, 503},   {-EMFILE, 503},  {-ENFILE, 503},     {-EIO, 500}};
    for (size_t i = 0; i < MK_LEN(cases); i++)
        assert_int_equal(mk_spool_status(cases[i].error), cases[i].status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(request_spool_any_length_is_complete, setup_spool),
        fixture_test(request_spool_waits_for_body, setup_spool),
        fixture_test(request_spool_error_is_permanent_and_frees_all, setup_spool),
        fixture_test(request_spool_caller_limit_is_enforced, setup_spool),
        fixture_test(request_spool_without_folder_uses_memory, setup_spool),
        fixture_test(request_spool_folder_error_is_logged, setup_spool),
        fixture_test(request_spool_client_gets_half_of_disk_quota, setup_spool),
        fixture_test(request_spool_memory_of_client_is_limited, setup_spool),
        fixture_test(request_spool_freed_spool_returns_quota, setup_spool),
        fixture_test(request_spool_rewrite_drops_body, setup_spool),
        fixture_test(request_spool_reads_nothing_while_thread_writes, setup_spool_with_thread),
        fixture_test(request_spool_request_may_end_while_thread_writes, setup_spool_with_thread),
        cmocka_unit_test(request_spool_errors_map_to_statuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
