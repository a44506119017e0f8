/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder/recorder_writer.h"

#include <monkey/clock.h>

#include "unit/site.h"
#include "unit/test.h"
#include "web/access_record.h"

enum { REQUESTS = 4, FAILURES = 3, SLOW_MS = 500 };

static struct site site;
static _Alignas(
    struct mk_recorder_record) char memory[sizeof(struct mk_recorder_slot) +
                                           (REQUESTS + FAILURES) * sizeof(struct mk_recorder_record)];
static struct mk_recorder_slot *slot = (struct mk_recorder_slot *)memory;
static struct mk_recorder_store store;
static struct mk_recorder_limits limits;
static struct mk_recorder_writer *writer;

static void open_writer(void)
{
    slot->owner = 1;
    writer = mk_recorder_writer_new(&store, slot, &limits);
    assert_non_null(writer);
}

static void setup(void)
{
    memset(memory, 0, sizeof memory);
    store = (struct mk_recorder_store){.header = {.n_requests = REQUESTS, .n_failures = FAILURES}};
    limits = (struct mk_recorder_limits){.slow_ms = SLOW_MS};
    site_setup(&site);
    site.now_ms = mk_clock_ms(); /* the duration of a request that a handler delays is real */
    open_writer();
}

static void teardown(void)
{
    mk_recorder_writer_free(writer);
}

static const struct mk_recorder_record *record_at(unsigned i)
{
    const struct mk_recorder_record *r = &mk_recorder_slot_records(slot)[i];
    assert_int_equal(r->version % 2, 0);
    assert_int_equal(r->check, r->version);
    return r;
}

static mk_str text_of(const struct mk_recorder_record *r, enum mk_recorder_text which)
{
    size_t at = 0;
    for (unsigned i = 0; i < (unsigned)which; i++)
        at += r->len[i];
    return mk_str_of(r->text + at, r->len[which]);
}

static struct mk_exchange *begin(const char *target)
{
    struct mk_exchange *x = site_get(&site, target, "");
    assert_non_null(x);
    x->request.route = &site_route;
    return x;
}

static void end_with(struct mk_exchange *x, unsigned status, enum mk_outcome outcome, uint64_t duration_ms)
{
    const struct mk_access_record record = {.request = &x->request,
                                            .status = status,
                                            .outcome = outcome,
                                            .content_received = 7,
                                            .content_sent = 100,
                                            .duration_ms = duration_ms};
    mk_recorder_writer_end(&record, writer);
    mk_exchange_free(x);
}

static void end(struct mk_exchange *x)
{
    end_with(x, 200, MK_OUTCOME_OK, 12);
}

static void writer_ended_request_has_one_record(void **state)
{
    (void)state;
    end(begin("/a?b=c"));
    const struct mk_recorder_record *r = record_at(0);
    assert_int_equal(r->state, MK_RECORDER_ENDED);
    assert_int_equal(r->status, 200);
    assert_int_equal(r->duration_us, 12000);
    assert_int_equal(r->received, 7);
    assert_int_equal(r->sent, 100);
    assert_int_equal(r->method, MK_METHOD_GET);
    assert_int_equal(r->http_version, 11);
    assert_int_equal(r->pid, getpid());
    assert_str(text_of(r, MK_RECORDER_HOST), "a");
    assert_str(text_of(r, MK_RECORDER_PATH), "/a");
    assert_str(text_of(r, MK_RECORDER_ROUTE), "/*");
    assert_str(text_of(r, MK_RECORDER_REASON), "");
    assert_int_equal(record_at(1)->state, MK_RECORDER_EMPTY);
    assert_int_equal(record_at(REQUESTS)->state, MK_RECORDER_EMPTY);
}

static void writer_records_query_if_wanted(void **state)
{
    (void)state;
    teardown();
    limits.with_query = true;
    open_writer();
    end(begin("/a?b=c"));
    assert_str(text_of(record_at(0), MK_RECORDER_PATH), "/a?b=c");
}

static void writer_truncates_long_path(void **state)
{
    char path[400];
    (void)state;
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    end(begin(path));
    assert_int_equal(record_at(0)->len[MK_RECORDER_PATH], MK_RECORDER_PATH_MAX);
    assert_str(text_of(record_at(0), MK_RECORDER_ROUTE), "/*");
}

static void writer_full_ring_overwrites_oldest(void **state)
{
    (void)state;
    const char *paths[] = {"/0", "/1", "/2", "/3", "/4"};
    for (size_t i = 0; i < MK_LEN(paths); i++)
        end(begin(paths[i]));
    assert_str(text_of(record_at(0), MK_RECORDER_PATH), "/4");
    assert_str(text_of(record_at(1), MK_RECORDER_PATH), "/1");
    assert_true(record_at(0)->version > record_at(REQUESTS - 1)->version);
}

static void expect_failure(unsigned status, enum mk_outcome outcome, uint64_t duration_ms, bool is_failure)
{
    teardown();
    memset(memory, 0, sizeof memory);
    open_writer();
    end_with(begin("/"), status, outcome, duration_ms);
    assert_int_equal(record_at(is_failure ? REQUESTS : 0)->state, MK_RECORDER_ENDED);
    assert_int_equal(record_at(is_failure ? 0 : REQUESTS)->state, MK_RECORDER_EMPTY);
}

static void writer_failed_and_slow_requests_go_to_second_ring(void **state)
{
    (void)state;
    expect_failure(404, MK_OUTCOME_OK, 1, false);
    expect_failure(499, MK_OUTCOME_OK, 1, false);
    expect_failure(500, MK_OUTCOME_OK, 1, true);
    expect_failure(0, MK_OUTCOME_OK, 1, true); /* no response */
    expect_failure(400, MK_OUTCOME_REJECTED, 1, false);
    expect_failure(200, MK_OUTCOME_TIMEOUT, 1, true);
    expect_failure(200, MK_OUTCOME_OK, SLOW_MS - 1, false);
    expect_failure(200, MK_OUTCOME_OK, SLOW_MS, true);
    expect_failure(101, MK_OUTCOME_OK, SLOW_MS, false); /* a WebSocket lasts long */
}

static void writer_failure_has_reason(void **state)
{
    (void)state;
    end_with(begin("/"), 200, MK_OUTCOME_TIMEOUT, 1);
    assert_str(text_of(record_at(REQUESTS), MK_RECORDER_REASON), mk_outcome_name(MK_OUTCOME_TIMEOUT));
}

static void writer_request_in_flight_is_open_until_it_ends(void **state)
{
    (void)state;
    struct mk_exchange *x = begin("/a");
    mk_recorder_writer_begin(&x->request, writer);
    mk_recorder_writer_begin(&x->request, writer); /* another hook may delay it */
    assert_int_equal(record_at(0)->state, MK_RECORDER_OPEN);
    assert_int_equal(record_at(0)->status, 0);
    assert_str(text_of(record_at(0), MK_RECORDER_PATH), "/a");
    assert_int_equal(record_at(1)->state, MK_RECORDER_EMPTY);
    end(x);
    assert_int_equal(record_at(0)->state, MK_RECORDER_ENDED);
    assert_int_equal(record_at(0)->status, 200);
    assert_str(text_of(record_at(0), MK_RECORDER_ROUTE), "/*");
}

static void writer_failed_request_in_flight_moves_to_second_ring(void **state)
{
    (void)state;
    struct mk_exchange *x = begin("/a");
    mk_recorder_writer_begin(&x->request, writer);
    end_with(x, 502, MK_OUTCOME_OK, 1);
    assert_int_equal(record_at(0)->state, MK_RECORDER_EMPTY);
    assert_int_equal(record_at(REQUESTS)->state, MK_RECORDER_ENDED);
    assert_int_equal(record_at(REQUESTS)->status, 502);
}

/* A request that ends must not overwrite the record of another request that is still in flight. */
static void writer_full_ring_moves_request_in_flight_to_second_ring(void **state)
{
    (void)state;
    struct mk_exchange *x = begin("/long");
    mk_recorder_writer_begin(&x->request, writer);
    for (unsigned i = 0; i < REQUESTS; i++)
        end(begin("/"));
    assert_int_equal(record_at(0)->state, MK_RECORDER_ENDED);
    assert_str(text_of(record_at(0), MK_RECORDER_PATH), "/");
    assert_int_equal(record_at(REQUESTS)->state, MK_RECORDER_OPEN);
    assert_str(text_of(record_at(REQUESTS), MK_RECORDER_PATH), "/long");
    end(x);
    assert_int_equal(record_at(REQUESTS)->state, MK_RECORDER_ENDED);
}

/* If every record is in flight, the request whose record is overwritten gets a new one at its end. */
static void writer_overwritten_request_in_flight_is_recorded_at_its_end(void **state)
{
    struct mk_exchange *x[REQUESTS + FAILURES + 1];
    unsigned n_overwritten = 0;
    (void)state;
    for (size_t i = 0; i < MK_LEN(x); i++) {
        x[i] = begin("/");
        mk_recorder_writer_begin(&x[i]->request, writer);
    }
    for (size_t i = 0; i < MK_LEN(x); i++)
        n_overwritten += !x[i]->record;
    assert_int_equal(n_overwritten, 1);
    for (size_t i = 0; i < MK_LEN(x); i++)
        end(x[i]);
    for (unsigned i = 0; i < REQUESTS + FAILURES; i++)
        assert_int_not_equal(record_at(i)->state, MK_RECORDER_OPEN);
}

static void writer_marks_requests_of_dead_process_as_lost(void **state)
{
    (void)state;
    struct mk_exchange *x = begin("/a");
    mk_recorder_writer_begin(&x->request, writer);
    uint64_t version = record_at(0)->version;
    mk_recorder_writer_free(writer); /* as if the process had died: the request has not ended */
    assert_int_equal(slot->owner, 0);
    open_writer();
    mk_exchange_free(x);
    assert_int_equal(record_at(0)->state, MK_RECORDER_EMPTY);
    assert_int_equal(record_at(REQUESTS)->state, MK_RECORDER_LOST);
    assert_str(text_of(record_at(REQUESTS), MK_RECORDER_PATH), "/a");
    assert_true(record_at(REQUESTS)->version > version);
}

static void writer_discards_torn_record(void **state)
{
    (void)state;
    struct mk_exchange *x = begin("/a");
    mk_recorder_writer_begin(&x->request, writer);
    mk_recorder_writer_free(writer);
    mk_recorder_slot_records(slot)[0].check--;
    open_writer();
    mk_exchange_free(x);
    assert_int_equal(record_at(0)->state, MK_RECORDER_EMPTY);
    assert_int_equal(record_at(REQUESTS)->state, MK_RECORDER_EMPTY);
}

/* After a power failure, the indexes may be older than the records, or damaged. */
static void writer_repairs_indexes(void **state)
{
    (void)state;
    mk_recorder_writer_free(writer);
    slot->next_request = REQUESTS;
    slot->next_failure = 0;
    open_writer();
    end(begin("/"));
    end_with(begin("/"), 500, MK_OUTCOME_OK, 1);
    assert_int_equal(record_at(0)->state, MK_RECORDER_ENDED);
    assert_int_equal(record_at(REQUESTS)->state, MK_RECORDER_ENDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(writer_ended_request_has_one_record, setup, teardown),
        fixture_test(writer_records_query_if_wanted, setup, teardown),
        fixture_test(writer_truncates_long_path, setup, teardown),
        fixture_test(writer_full_ring_overwrites_oldest, setup, teardown),
        fixture_test(writer_failed_and_slow_requests_go_to_second_ring, setup, teardown),
        fixture_test(writer_failure_has_reason, setup, teardown),
        fixture_test(writer_request_in_flight_is_open_until_it_ends, setup, teardown),
        fixture_test(writer_failed_request_in_flight_moves_to_second_ring, setup, teardown),
        fixture_test(writer_full_ring_moves_request_in_flight_to_second_ring, setup, teardown),
        fixture_test(writer_overwritten_request_in_flight_is_recorded_at_its_end, setup, teardown),
        fixture_test(writer_marks_requests_of_dead_process_as_lost, setup, teardown),
        fixture_test(writer_discards_torn_record, setup, teardown),
        fixture_test(writer_repairs_indexes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
