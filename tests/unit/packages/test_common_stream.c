/* SPDX-License-Identifier: Apache-2.0 */
/* A package connection over a fake of the plugin `upstream`. */
#include <common/package_stream.h>

#include "unit/packages/conn_worker.h"

enum { ROOM = 16 * 1024 }; /* buffer size of a read */

/* ---- Fake plugin ---- */

static struct mk_upstream_conn_options asked_for;
static void (*ready)(void *ctx, unsigned which);
static void *ready_ctx;
static int conn_state;
static bool is_tls, has_no_memory;
static ssize_t reads[8]; /* results of successive reads, followed by -EAGAIN */
static unsigned n_reads, n_acquired, n_released;
static ssize_t write_max; /* number of bytes that a write accepts, or an error */
static char written[4096];
static size_t n_written;

struct mk_upstream_conn *mk_upstream_conn_acquire(struct mk_worker *w, struct mk_upstream *u,
                                                  const struct mk_upstream_conn_options *options,
                                                  void (*on_ready)(void *ctx, unsigned which), void *ctx)
{
    (void)w, (void)u;
    asked_for = *options;
    ready = on_ready;
    ready_ctx = ctx;
    n_acquired += !has_no_memory;
    return has_no_memory ? NULL : (struct mk_upstream_conn *)(void *)&a_thing;
}

int mk_upstream_conn_state(const struct mk_upstream_conn *c)
{
    assert_non_null(c);
    return conn_state;
}

ssize_t mk_upstream_conn_read(struct mk_upstream_conn *c, char *buffer, size_t cap)
{
    assert_non_null(c);
    assert_int_equal(cap, ROOM);
    ssize_t n = reads[n_reads] ? reads[n_reads] : -EAGAIN;
    n_reads++;
    if (n == -ENODATA) /* end of stream */
        return 0;
    if (n > 0)
        memset(buffer, 'x', (size_t)n);
    return n;
}

ssize_t mk_upstream_conn_write(struct mk_upstream_conn *c, mk_str bytes, bool more)
{
    assert_non_null(c);
    assert_false(more);
    ssize_t n = write_max;
    if (n <= 0)
        return n ? n : -EAGAIN;
    n = n < (ssize_t)bytes.len ? n : (ssize_t)bytes.len;
    if (n_written + (size_t)n <= sizeof written)
        memcpy(written + n_written, bytes.p, (size_t)n);
    n_written += (size_t)n;
    write_max -= n;
    return n;
}

void mk_upstream_conn_release(struct mk_upstream_conn *c, enum mk_upstream_conn_disposition how)
{
    assert_int_equal(how, MK_UPSTREAM_CONN_CLOSE);
    n_released += c != NULL;
}

bool mk_upstream_is_tls(const struct mk_upstream *u)
{
    (void)u;
    return is_tls;
}

/* ---- Owner ---- */

static struct package_stream stream;
static unsigned n_connected, n_pieces, n_ready;
static size_t n_bytes;
static int down_with;
static enum { READS, CLOSES, OPENS_ANOTHER } does;

static void on_connected(struct package_stream *s)
{
    n_connected++;
    package_conn_mark_ready(&s->base);
}

static void on_bytes(struct package_stream *s, mk_str bytes)
{
    n_pieces++;
    n_bytes += bytes.len;
    if (does != READS)
        package_conn_fail(&s->base, -EPROTO, "odd");
    if (does == OPENS_ANOTHER) {
        conn_state = -EAGAIN;
        package_conn_open(&s->base);
    }
}

static void on_ready(struct package_stream *s)
{
    assert_ptr_equal(s, &stream);
    n_ready++;
}

static void on_down(struct package_conn *conn, int error)
{
    assert_null(((struct package_stream *)conn)->upstream_conn);
    down_with = error;
}

static const struct package_stream_ops reading = {.on_connected = on_connected, .on_bytes = on_bytes};
static const struct package_stream_ops telling = {.on_connected = on_connected, .on_ready = on_ready};
static const struct package_conn_ops package_ops = {
    .section = "REDIS", .connect = package_stream_connect, .close = package_stream_close, .on_down = on_down};

static void setup(void)
{
    now_ms = 1000000;
    memset(&stream, 0, sizeof stream);
    memset(reads, 0, sizeof reads);
    conn_state = down_with = 0;
    is_tls = has_no_memory = false;
    n_reads = n_acquired = n_released = n_connected = n_pieces = n_ready = 0;
    n_bytes = n_written = 0;
    write_max = 1 << 30;
    does = READS;
    package_stream_init(&stream, &reading, NULL);
    assert_int_equal(package_conn_init(&stream.base, NULL, &package_ops, MK_STR("main"), 1000), 0);
}

static void teardown(void)
{
    package_conn_fini(&stream.base);
    assert_int_equal(n_acquired, n_released);
    assert_int_equal(n_open, 0);
    assert_int_equal(timer_at, 0);
}

static void bring_up(void)
{
    package_conn_open(&stream.base);
    assert_true(package_conn_is_in_state(&stream.base, PACKAGE_CONN_READY));
    n_reads = 0;
}

/* ---- Connecting ---- */

static void stream_acquires_a_fresh_connection_to_any_server(void **state)
{
    (void)state;
    package_conn_open(&stream.base);
    assert_true(asked_for.fresh && !asked_for.address.p);
    assert_int_equal(asked_for.server, -1);
    assert_int_equal(n_connected, 1);
}

static void stream_acquires_connection_to_given_address(void **state)
{
    (void)state;
    stream.to = MK_STR("127.0.0.1:6380");
    package_conn_open(&stream.base);
    assert_str(asked_for.address, "127.0.0.1:6380");
}

static void stream_waits_for_the_connection(void **state)
{
    (void)state;
    conn_state = -EAGAIN;
    package_conn_open(&stream.base);
    ready(ready_ctx, MK_WRITABLE);
    assert_int_equal(n_connected, 0);
    assert_int_equal(n_reads, 0);
    conn_state = 0;
    ready(ready_ctx, MK_WRITABLE);
    ready(ready_ctx, MK_WRITABLE);
    assert_int_equal(n_connected, 1);
}

static void stream_connect_error_is_mapped_for_handlers(void **state)
{
    (void)state;
    conn_state = -ENOENT;
    package_conn_open(&stream.base);
    assert_int_equal(down_with, -ECONNREFUSED);
    assert_string_equal(package_conn_error_reason(&stream.base), strerror(ENOENT));
    assert_int_equal(n_connected + n_reads, 0);
}

static void stream_without_memory_for_connection_fails(void **state)
{
    (void)state;
    has_no_memory = true;
    package_conn_open(&stream.base);
    assert_int_equal(down_with, -ENOMEM);
}

static void stream_without_on_bytes_notifies_owner(void **state)
{
    (void)state;
    stream.ops = &telling;
    package_conn_open(&stream.base);
    assert_int_equal(n_ready, 1);
    ready(ready_ctx, MK_READABLE);
    assert_int_equal(n_ready, 2);
    assert_int_equal(n_reads, 0);
}

/* ---- Writing ---- */

static void stream_keeps_unsent_bytes(void **state)
{
    (void)state;
    bring_up();
    write_max = 3;
    mk_buf_add(&stream.out, MK_STR("PING\r\n"));
    package_stream_flush(&stream);
    assert_str(mk_buf_str(&stream.out), "G\r\n");
    write_max = 100;
    ready(ready_ctx, MK_WRITABLE);
    assert_int_equal(stream.out.len, 0);
    assert_str(mk_str_of(written, n_written), "PING\r\n");
}

static void stream_frees_large_buffer(void **state)
{
    (void)state;
    bring_up();
    mk_buf_add(&stream.out, MK_STR("PING\r\n"));
    package_stream_flush(&stream);
    assert_true(stream.out.cap > 0);
    assert_true(mk_buf_reserve(&stream.out, 300 << 10));
    stream.out.len = 300 << 10;
    write_max = 1000;
    memset(stream.out.p, 'x', stream.out.len);
    package_stream_flush(&stream);
    assert_true(stream.out.cap >= 300 << 10 && stream.out.len);
    write_max = 1 << 30;
    package_stream_flush(&stream);
    assert_int_equal(stream.out.cap, 0);
}

static void stream_without_memory_for_output_fails(void **state)
{
    (void)state;
    bring_up();
    stream.out.failed = true;
    package_stream_flush(&stream);
    assert_int_equal(down_with, -ENOMEM);
    assert_string_equal(package_conn_error_reason(&stream.base), "out of memory for commands");
    assert_false(stream.out.failed);
}

static void stream_write_error_closes_it(void **state)
{
    (void)state;
    bring_up();
    write_max = -EPIPE;
    mk_buf_add(&stream.out, MK_STR("PING\r\n"));
    package_stream_flush(&stream);
    assert_int_equal(down_with, -EPIPE);
    assert_int_equal(stream.out.len, 0);
    now_ms += 1000;
    write_max = -EACCES;
    bring_up();
    assert_int_equal(package_stream_write(&stream, MK_STR("x")), -ENOKEY);
    assert_int_equal(down_with, -ENOKEY);
}

/* ---- Reading ---- */

static void stream_stops_after_short_read(void **state)
{
    (void)state;
    bring_up();
    reads[0] = ROOM;
    reads[1] = reads[2] = 10;
    ready(ready_ctx, MK_READABLE);
    assert_int_equal(n_reads, 2);
    assert_int_equal(n_bytes, ROOM + 10);
}

static void stream_reads_all_tls_records(void **state)
{
    (void)state;
    bring_up();
    is_tls = true;
    reads[0] = reads[1] = 10;
    ready(ready_ctx, MK_READABLE);
    assert_int_equal(n_reads, 3);
    assert_int_equal(n_pieces, 2);
    assert_true(package_conn_is_in_state(&stream.base, PACKAGE_CONN_READY));
}

static void stream_reads_until_eof(void **state)
{
    static const unsigned ends[] = {MK_ENDED, MK_HUNG_UP};
    (void)state;
    for (size_t i = 0; i < MK_LEN(ends); i++) {
        bring_up();
        down_with = 0;
        reads[0] = 10;
        reads[1] = -ENODATA;
        ready(ready_ctx, MK_READABLE | ends[i]);
        assert_int_equal(n_pieces, i + 1);
        assert_int_equal(down_with, -ECONNRESET);
        assert_string_equal(package_conn_error_reason(&stream.base), "the server has closed the connection");
        memset(reads, 0, sizeof reads);
    }
}

static void stream_read_error_closes_it(void **state)
{
    (void)state;
    bring_up();
    reads[0] = -ETIMEDOUT;
    ready(ready_ctx, MK_READABLE);
    assert_int_equal(down_with, -ETIMEDOUT);
    assert_string_equal(package_conn_error_reason(&stream.base), strerror(ETIMEDOUT));
}

static void stream_closed_by_reader_is_not_read(void **state)
{
    (void)state;
    bring_up();
    does = CLOSES;
    reads[0] = reads[1] = ROOM;
    ready(ready_ctx, MK_READABLE);
    assert_int_equal(n_reads, 1);
}

static void stream_reopened_by_reader_is_read_when_connected(void **state)
{
    (void)state;
    bring_up();
    does = OPENS_ANOTHER;
    reads[0] = reads[1] = ROOM;
    ready(ready_ctx, MK_READABLE);
    assert_int_equal(n_reads, 1);
    assert_true(package_conn_is_in_state(&stream.base, PACKAGE_CONN_CONNECTING));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(stream_acquires_a_fresh_connection_to_any_server, setup, teardown),
        fixture_test(stream_acquires_connection_to_given_address, setup, teardown),
        fixture_test(stream_waits_for_the_connection, setup, teardown),
        fixture_test(stream_connect_error_is_mapped_for_handlers, setup, teardown),
        fixture_test(stream_without_memory_for_connection_fails, setup, teardown),
        fixture_test(stream_without_on_bytes_notifies_owner, setup, teardown),
        fixture_test(stream_keeps_unsent_bytes, setup, teardown),
        fixture_test(stream_frees_large_buffer, setup, teardown),
        fixture_test(stream_without_memory_for_output_fails, setup, teardown),
        fixture_test(stream_write_error_closes_it, setup, teardown),
        fixture_test(stream_stops_after_short_read, setup, teardown),
        fixture_test(stream_reads_all_tls_records, setup, teardown),
        fixture_test(stream_reads_until_eof, setup, teardown),
        fixture_test(stream_read_error_closes_it, setup, teardown),
        fixture_test(stream_closed_by_reader_is_not_read, setup, teardown),
        fixture_test(stream_reopened_by_reader_is_read_when_connected, setup, teardown),
    };
    return cmocka_run_group_tests_name("package_conn stream", tests, NULL, NULL);
}
