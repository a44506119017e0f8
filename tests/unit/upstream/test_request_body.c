/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/request_body.h"

#include <errno.h>

#include "unit/test.h"

enum { TEXT_MAX = 16 * 1024 };

struct mk_spool {
    mk_str text;
};

/* A request with the body `text`, of which the first `arrived` bytes can be read. */
struct mk_request {
    int64_t length;
    mk_str text;
    size_t arrived, read;
    bool lacks_memory, ends_early;
    mk_str expect;
    int error;
    const struct mk_header *trailers;
    size_t n_trailers;
    struct mk_spool spool;
    unsigned n_reads, n_resumed;
};

static char memory[TEXT_MAX], long_text[TEXT_MAX + 10];

int64_t mk_request_length(const struct mk_request *r)
{
    return r->length;
}

void *mk_request_alloc(struct mk_request *r, size_t size)
{
    assert_true(size <= sizeof memory);
    return r->lacks_memory ? NULL : memory;
}

mk_str mk_request_header(const struct mk_request *r, mk_str name)
{
    assert_str(name, "Expect");
    return r->expect;
}

void mk_request_resume(struct mk_request *r)
{
    r->n_resumed++;
}

ssize_t mk_request_read(struct mk_request *r, char *buffer, size_t cap)
{
    mk_str rest = mk_str_first(mk_str_skip(mk_str_first(r->text, r->arrived), r->read), cap);
    r->n_reads++;
    if (r->error)
        return r->error;
    memcpy(buffer, rest.p, rest.len);
    r->read += rest.len;
    return rest.len || r->read == r->text.len || r->ends_early ? (ssize_t)rest.len : -EAGAIN;
}

bool mk_request_trailer_at(const struct mk_request *r, size_t i, mk_str *name, mk_str *value)
{
    if (i >= r->n_trailers)
        return false;
    *name = r->trailers[i].name;
    *value = r->trailers[i].value;
    return true;
}

int mk_spool_request(struct mk_request *r, uint64_t max, struct mk_spool **out)
{
    assert_int_equal(max, 0);
    if (r->arrived < r->text.len)
        return -EAGAIN;
    r->spool.text = mk_str_skip(r->text, r->read);
    *out = &r->spool;
    return 0;
}

uint64_t mk_spool_length(const struct mk_spool *s)
{
    return s->text.len;
}

ssize_t mk_spool_read(const struct mk_spool *s, char *buffer, size_t cap, uint64_t at)
{
    mk_str rest = mk_str_first(mk_str_skip(s->text, (size_t)at), cap);
    memcpy(buffer, rest.p, rest.len);
    return (ssize_t)rest.len;
}

static struct mk_request request_with(int64_t length, mk_str text)
{
    return (struct mk_request){.length = length, .text = text, .arrived = text.len};
}

static mk_str long_body(void)
{
    for (size_t i = 0; i < sizeof long_text; i++)
        long_text[i] = (char)('a' + i % 23);
    return mk_str_of(long_text, sizeof long_text);
}

static struct mk_request_body body_of(struct mk_request *r, enum mk_request_body_mode mode)
{
    return (struct mk_request_body){.request = r, .mode = (uint8_t)mode};
}

static ssize_t pull(const struct mk_upstream_request_options *options, char *buffer, size_t cap)
{
    return options->body_source->source.read(options->body_source_ctx, buffer, cap);
}

static struct mk_upstream_request_options attach(struct mk_request_body *b)
{
    struct mk_upstream_request_options options = {0};
    mk_request_body_attach(b, &options);
    return options;
}

static void request_body_absent_is_not_read(void **state)
{
    struct mk_request r = request_with(0, MK_STR(""));
    struct mk_request_body b = body_of(&r, MK_REQUEST_BODY_BUFFER);
    (void)state;
    assert_true(mk_request_body_init(&b));
    assert_int_equal(mk_request_body_receive(&b), 0);
    struct mk_upstream_request_options options = attach(&b);
    assert_true(options.length == 0 && !options.body_source && !options.body.p && r.n_reads == 0);
}

static void request_body_small_is_buffered_with_length(void **state)
{
    const int64_t lengths[] = {5, MK_LENGTH_UNKNOWN};
    (void)state;
    for (size_t i = 0; i < MK_LEN(lengths); i++) {
        struct mk_request r = request_with(lengths[i], MK_STR("hello"));
        struct mk_request_body b = body_of(&r, MK_REQUEST_BODY_BUFFER);
        r.arrived = 2;
        assert_true(mk_request_body_init(&b));
        assert_int_equal(mk_request_body_receive(&b), -EAGAIN);
        r.arrived = 5;
        assert_int_equal(mk_request_body_receive(&b), 0);
        struct mk_upstream_request_options options = attach(&b);
        assert_str(options.body, "hello");
        assert_true(options.length == 5 && !options.body_source);
    }
}

static void request_body_large_is_spooled_and_can_rewind(void **state)
{
    const int64_t lengths[] = {sizeof long_text, MK_LENGTH_UNKNOWN};
    (void)state;
    for (size_t i = 0; i < MK_LEN(lengths); i++) {
        struct mk_request r = request_with(lengths[i], long_body());
        struct mk_request_body b = body_of(&r, MK_REQUEST_BODY_BUFFER);
        char got[sizeof long_text + 1];
        r.arrived = TEXT_MAX + 1;
        assert_true(mk_request_body_init(&b));
        assert_int_equal(mk_request_body_receive(&b), -EAGAIN);
        r.arrived = r.text.len;
        assert_int_equal(mk_request_body_receive(&b), 0);
        struct mk_upstream_request_options options = attach(&b);
        assert_true(options.length == sizeof long_text && !options.body.p);
        for (unsigned times = 0; times < 2; times++) {
            ssize_t n;
            size_t len = 0;
            while ((n = pull(&options, got + len, MK_LEN(got) - len < 1000 ? MK_LEN(got) - len : 1000)) > 0)
                len += (size_t)n;
            assert_true(n == 0 && len == sizeof long_text);
            assert_memory_equal(got, long_text, len);
            assert_true(options.body_source->rewind(options.body_source_ctx));
        }
    }
}

static void request_body_client_error_is_reported(void **state)
{
    struct mk_request r = request_with(5, MK_STR("hello"));
    struct mk_request_body b = body_of(&r, MK_REQUEST_BODY_BUFFER);
    (void)state;
    r.arrived = 2;
    r.ends_early = true;
    assert_true(mk_request_body_init(&b));
    assert_int_equal(mk_request_body_receive(&b), -EBADMSG);
}

static void request_body_init_without_memory_fails(void **state)
{
    struct mk_request r = request_with(5, MK_STR("hello"));
    struct mk_request_body b = body_of(&r, MK_REQUEST_BODY_BUFFER);
    (void)state;
    r.lacks_memory = true;
    assert_false(mk_request_body_init(&b));
}

/* A streamed body becomes readable once the server has called the handler, which the first pull requests. */
static void request_body_streamed_is_read_after_handler_call(void **state)
{
    struct mk_request r = request_with(5, MK_STR("hello"));
    struct mk_request_body b = body_of(&r, MK_REQUEST_BODY_STREAM);
    char buffer[4];
    (void)state;
    r.arrived = 0;
    assert_true(mk_request_body_init(&b));
    assert_int_equal(mk_request_body_receive(&b), 0);
    struct mk_upstream_request_options options = attach(&b);
    assert_true(options.length == 5 && !options.body_source->rewind && !options.expects_continue);
    r.arrived = 5;
    r.n_reads = 0;
    assert_int_equal(pull(&options, buffer, 4), -EAGAIN);
    assert_true(r.n_reads == 0 && r.n_resumed == 1);
    b.is_readable = true;
    assert_int_equal(pull(&options, buffer, 4), 4);
    assert_int_equal(pull(&options, buffer, 4), 1);
    assert_int_equal(pull(&options, buffer, 4), 0);
    assert_int_equal(r.n_resumed, 1);
}

static void request_body_streamed_that_has_arrived_is_sent_at_once(void **state)
{
    struct mk_request r = request_with(5, MK_STR("hello"));
    struct mk_request_body b = body_of(&r, MK_REQUEST_BODY_STREAM);
    (void)state;
    assert_true(mk_request_body_init(&b));
    assert_int_equal(mk_request_body_receive(&b), 0);
    struct mk_upstream_request_options options = attach(&b);
    assert_str(options.body, "hello");
    assert_true(options.length == 5 && !options.body_source);
}

/* Whether a body has arrived yet does not change its framing. */
static void request_body_streamed_of_unknown_length_keeps_it(void **state)
{
    struct mk_request r = request_with(MK_LENGTH_UNKNOWN, MK_STR("hello"));
    struct mk_request_body b = body_of(&r, MK_REQUEST_BODY_STREAM);
    char buffer[9];
    (void)state;
    assert_true(mk_request_body_init(&b));
    assert_int_equal(mk_request_body_receive(&b), 0);
    struct mk_upstream_request_options options = attach(&b);
    assert_int_equal(options.length, MK_LENGTH_UNKNOWN);
    assert_int_equal(pull(&options, buffer, sizeof buffer), 5);
    assert_int_equal(pull(&options, buffer, sizeof buffer), 0);
    assert_true(options.body_source->rewind(options.body_source_ctx) && r.n_resumed == 0);
}

static void request_body_streamed_continues_where_the_arrived_part_ends(void **state)
{
    const size_t arrived[] = {1, 2047, 2048, 2049, TEXT_MAX};
    (void)state;
    for (size_t i = 0; i < MK_LEN(arrived); i++) {
        struct mk_request r = request_with(MK_LENGTH_UNKNOWN, long_body());
        struct mk_request_body b = body_of(&r, MK_REQUEST_BODY_STREAM);
        char got[sizeof long_text + 1];
        size_t len = 0;
        ssize_t n;
        r.arrived = arrived[i];
        assert_true(mk_request_body_init(&b));
        assert_int_equal(mk_request_body_receive(&b), 0);
        struct mk_upstream_request_options options = attach(&b);
        assert_int_equal(options.length, MK_LENGTH_UNKNOWN);
        while ((n = pull(&options, got + len, 1000)) > 0)
            len += (size_t)n;
        assert_int_equal(len, arrived[i] < 2048 ? arrived[i] : 2048);
        assert_true(n == -EAGAIN && r.n_resumed == 1);
        r.arrived = r.text.len;
        b.is_readable = true;
        while ((n = pull(&options, got + len, sizeof got - len)) > 0)
            len += (size_t)n;
        assert_true(n == 0 && len == sizeof long_text);
        assert_memory_equal(got, long_text, len);
    }
}

static void request_body_streamed_with_expect_is_not_read_early(void **state)
{
    struct mk_request r = request_with(5, MK_STR("hello"));
    struct mk_request_body b = body_of(&r, MK_REQUEST_BODY_STREAM);
    (void)state;
    r.expect = MK_STR("100-continue");
    assert_true(mk_request_body_init(&b));
    assert_int_equal(mk_request_body_receive(&b), 0);
    assert_true(r.n_reads == 0 && attach(&b).body_source);
}

static void request_body_streamed_reports_errors_of_the_arrived_part(void **state)
{
    struct {
        bool lacks_memory, ends_early;
        int error, expected;
    } cases[] = {{true, false, 0, -ENOMEM}, {false, true, 0, -EBADMSG}, {false, false, -E2BIG, -E2BIG}};
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct mk_request r = request_with(5, MK_STR("hello"));
        struct mk_request_body b = body_of(&r, MK_REQUEST_BODY_STREAM);
        r.arrived = 2;
        r.lacks_memory = cases[i].lacks_memory;
        r.ends_early = cases[i].ends_early;
        r.error = cases[i].error;
        assert_true(mk_request_body_init(&b));
        assert_int_equal(mk_request_body_receive(&b), cases[i].expected);
    }
}

static void request_body_buffer_small_streams_large_bodies(void **state)
{
    struct mk_request small = request_with(5, MK_STR("hello")),
                      unknown = request_with(MK_LENGTH_UNKNOWN, MK_STR("hello")),
                      large = request_with(sizeof long_text, long_body());
    struct {
        struct mk_request *request;
        bool is_streamed;
    } cases[] = {{&small, false}, {&unknown, true}, {&large, true}};
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct mk_request_body b = body_of(cases[i].request, MK_REQUEST_BODY_BUFFER_SMALL);
        assert_true(mk_request_body_init(&b));
        assert_int_equal(mk_request_body_receive(&b), 0);
        struct mk_upstream_request_options options = attach(&b);
        assert_int_equal(options.body_source != NULL, cases[i].is_streamed);
        assert_int_equal(options.length, cases[i].request->length);
    }
}

static void request_body_with_expect_continue_waits_for_backend(void **state)
{
    struct mk_request r = request_with(5, MK_STR("hello"));
    struct mk_request_body b = body_of(&r, MK_REQUEST_BODY_BUFFER_SMALL);
    (void)state;
    b.is_held = true;
    assert_true(mk_request_body_init(&b));
    assert_int_equal(mk_request_body_receive(&b), 0);
    struct mk_upstream_request_options options = attach(&b);
    assert_true(options.expects_continue && options.body_source && options.length == 5 && r.n_reads == 0);
}

/* ---- Trailers ---- */

static bool sends_x(struct mk_request_body *b, mk_str name)
{
    (void)b;
    return name.p[0] == 'X';
}

static void request_body_trailers_are_filtered_and_need_chunks(void **state)
{
    const struct mk_header lines[] = {{MK_STR_INIT("Host"), MK_STR_INIT("a")},
                                      {MK_STR_INIT("X-Sum"), MK_STR_INIT("1")}};
    struct mk_request r = request_with(MK_LENGTH_UNKNOWN, MK_STR("hello"));
    mk_str name, value;
    char buffer[9];
    (void)state;
    for (size_t n = 0; n <= 2; n++) {
        struct mk_request_body b = body_of(&r, MK_REQUEST_BODY_BUFFER);
        r.read = 0;
        r.trailers = lines;
        r.n_trailers = n;
        b.sends_trailer = sends_x;
        assert_true(mk_request_body_init(&b));
        assert_int_equal(mk_request_body_receive(&b), 0);
        struct mk_upstream_request_options options = attach(&b);
        assert_int_equal(options.length, n == 2 ? MK_LENGTH_UNKNOWN : 5);
        if (n < 2)
            continue;
        assert_int_equal(pull(&options, buffer, sizeof buffer), 5);
        assert_int_equal(pull(&options, buffer, sizeof buffer), 0);
        assert_true(options.body_source->trailer_at(options.body_source_ctx, 0, &name, &value));
        assert_str(name, "X-Sum");
        assert_false(options.body_source->trailer_at(options.body_source_ctx, 1, &name, &value));
    }
}

/* The framing of HTTP/2 has room for trailers whether or not the length is known. */
static void request_body_of_known_length_keeps_trailers(void **state)
{
    const enum mk_request_body_mode modes[] = {MK_REQUEST_BODY_BUFFER, MK_REQUEST_BODY_STREAM};
    const struct mk_header line = {MK_STR_INIT("X-Sum"), MK_STR_INIT("1")};
    mk_str name, value;
    (void)state;
    for (size_t i = 0; i < MK_LEN(modes); i++) {
        struct mk_request r = request_with(5, MK_STR("hello"));
        struct mk_request_body b = body_of(&r, modes[i]);
        r.trailers = &line;
        r.n_trailers = 1;
        b.sends_trailer = sends_x;
        assert_true(mk_request_body_init(&b));
        assert_int_equal(mk_request_body_receive(&b), 0);
        struct mk_upstream_request_options options = attach(&b);
        assert_true(options.length == 5 && !options.body.p);
        assert_true(options.body_source->trailer_at(options.body_source_ctx, 0, &name, &value));
        assert_str(name, "X-Sum");
    }
}

/* ---- Upgrades ---- */

static void request_body_is_followed_by_tunnel(void **state)
{
    struct mk_request r = request_with(5, MK_STR("hello"));
    struct mk_request_body b = body_of(&r, MK_REQUEST_BODY_STREAM);
    char buffer[9];
    (void)state;
    b.upgrade = MK_REQUEST_BODY_WANTS_UPGRADE;
    assert_true(mk_request_body_init(&b));
    assert_int_equal(mk_request_body_receive(&b), 0);
    struct mk_upstream_request_options options = attach(&b);
    assert_str(options.body, "hello");
    r.text = MK_STR("hello, tunnel");
    r.arrived = r.text.len;
    b.is_readable = true;
    assert_int_equal(pull(&options, buffer, sizeof buffer), -EAGAIN); /* the backend may refuse the upgrade */
    b.upgrade = MK_REQUEST_BODY_UPGRADED;
    assert_int_equal(pull(&options, buffer, sizeof buffer), 8);
    assert_memory_equal(buffer, ", tunnel", 8);
}

static void request_body_large_drops_upgrade(void **state)
{
    const int64_t lengths[] = {sizeof long_text, MK_LENGTH_UNKNOWN};
    (void)state;
    for (size_t i = 0; i < MK_LEN(lengths); i++) {
        struct mk_request r = request_with(lengths[i], long_body());
        struct mk_request_body b = body_of(&r, MK_REQUEST_BODY_BUFFER);
        b.upgrade = MK_REQUEST_BODY_WANTS_UPGRADE;
        assert_true(mk_request_body_init(&b));
        assert_int_equal(mk_request_body_receive(&b), 0);
        struct mk_upstream_request_options options = attach(&b);
        assert_true(b.upgrade == MK_REQUEST_BODY_NO_UPGRADE && options.length == sizeof long_text &&
                    options.body_source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_body_absent_is_not_read),
        cmocka_unit_test(request_body_small_is_buffered_with_length),
        cmocka_unit_test(request_body_large_is_spooled_and_can_rewind),
        cmocka_unit_test(request_body_client_error_is_reported),
        cmocka_unit_test(request_body_init_without_memory_fails),
        cmocka_unit_test(request_body_streamed_is_read_after_handler_call),
        cmocka_unit_test(request_body_streamed_that_has_arrived_is_sent_at_once),
        cmocka_unit_test(request_body_streamed_of_unknown_length_keeps_it),
        cmocka_unit_test(request_body_streamed_continues_where_the_arrived_part_ends),
        cmocka_unit_test(request_body_streamed_with_expect_is_not_read_early),
        cmocka_unit_test(request_body_streamed_reports_errors_of_the_arrived_part),
        cmocka_unit_test(request_body_buffer_small_streams_large_bodies),
        cmocka_unit_test(request_body_with_expect_continue_waits_for_backend),
        cmocka_unit_test(request_body_trailers_are_filtered_and_need_chunks),
        cmocka_unit_test(request_body_of_known_length_keeps_trailers),
        cmocka_unit_test(request_body_is_followed_by_tunnel),
        cmocka_unit_test(request_body_large_drops_upgrade),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
