/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <errno.h>
#include <monkey/access_record.h>
#include <monkey/recording.h>

#include "unit/test.h"

enum { OFFLOADS_MAX = 16 };

/* What the worker does with a command. */
static struct {
    bool has_no_thread;
    unsigned n_offloads, n_done;
    void (*done[OFFLOADS_MAX])(void *ctx);
    void *ctx[OFFLOADS_MAX];
} worker;

int mk_worker_recording(const struct mk_worker *w)
{
    (void)w;
    return 0; /* no thread runs, which would read it */
}

int mk_worker_offload(struct mk_worker *w, void (*work)(void *ctx), void (*done)(void *ctx), void *ctx)
{
    (void)w, (void)work;
    if (worker.has_no_thread)
        return -EAGAIN;
    for (unsigned i = worker.n_done; i < worker.n_offloads; i++)
        assert_ptr_not_equal(worker.ctx[i], ctx);
    assert_true(worker.n_offloads < OFFLOADS_MAX);
    worker.done[worker.n_offloads] = done;
    worker.ctx[worker.n_offloads++] = ctx;
    return 0;
}

const char *mk_outcome_name(enum mk_outcome outcome)
{
    (void)outcome;
    return "";
}

static void end_oldest_job(void)
{
    assert_true(worker.n_done < worker.n_offloads);
    unsigned i = worker.n_done++;
    worker.done[i](worker.ctx[i]);
}

/* A client that sends `n_more` commands, each when the response to the one before has arrived. */
struct client {
    struct top_server *server;
    unsigned n_more, n_responses;
    int code, error; /* the results of top_command_run() and done() */
    char text[64];
};

static void send_command(struct client *c);

static void on_response(void *ctx, int error, mk_str text)
{
    struct client *c = ctx;
    (void)text;
    c->error = error;
    c->n_responses++;
    if (c->n_more) {
        c->n_more--;
        send_command(c);
    }
}

static void send_command(struct client *c)
{
    struct mk_buf out = mk_buf_fixed(c->text, sizeof c->text - 1);
    const struct mk_command_end end = {on_response, c};
    c->code = top_command_run(c->server, MK_STR("requests"), &out, &end);
    c->text[out.len] = '\0';
}

static struct top_server *server;

static void set_up(void)
{
    memset(&worker, 0, sizeof worker);
    server = top_server_new(NULL);
    assert_non_null(server);
}

static void tear_down(void)
{
    top_server_free(server);
}

static void command_next_one_of_a_client_is_started_once(void **state)
{
    struct client c = {.server = server, .n_more = 2};
    (void)state;
    send_command(&c);
    assert_int_equal(c.code, -EINPROGRESS);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(worker.n_offloads, i);
        end_oldest_job();
        assert_int_equal(c.n_responses, i);
    }
    assert_int_equal(worker.n_offloads, 3);
}

static void command_clients_take_turns(void **state)
{
    struct client a = {.server = server, .n_more = 1}, b = {.server = server};
    (void)state;
    send_command(&a);
    send_command(&b);
    assert_int_equal(worker.n_offloads, 1);
    end_oldest_job();
    assert_int_equal(worker.n_offloads, 2);
    end_oldest_job();
    assert_int_equal(b.n_responses, 1);
    assert_int_equal(a.n_responses, 1);
    end_oldest_job();
    assert_int_equal(a.n_responses, 2);
    assert_int_equal(worker.n_offloads, 3);
}

static void command_without_a_thread_fails_at_once(void **state)
{
    struct client c = {.server = server, .n_more = 1};
    (void)state;
    worker.has_no_thread = true;
    send_command(&c);
    assert_int_equal(c.code, -EIO);
    assert_string_equal(c.text, "the server is busy, or this process exits");
    assert_int_equal(c.n_responses, 0);
    worker.has_no_thread = false;
    send_command(&c);
    assert_int_equal(c.code, -EINPROGRESS);
    end_oldest_job();
    end_oldest_job();
    assert_int_equal(c.n_responses, 2);
}

static void command_queued_ones_fail_when_no_thread_is_left(void **state)
{
    struct client a = {.server = server, .n_more = 1}, b = {.server = server, .n_more = 1},
                  c = {.server = server};
    (void)state;
    send_command(&a);
    send_command(&b);
    send_command(&c);
    worker.has_no_thread = true;
    end_oldest_job();
    assert_int_equal(a.n_responses, 1);
    assert_int_equal(a.code, -EIO); /* the second command */
    assert_int_equal(b.n_responses, 1);
    assert_int_equal(b.error, -EIO);
    assert_int_equal(b.code, -EIO);
    assert_int_equal(c.n_responses, 1);
    assert_int_equal(c.error, -EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(command_next_one_of_a_client_is_started_once, set_up, tear_down),
        fixture_test(command_clients_take_turns, set_up, tear_down),
        fixture_test(command_without_a_thread_fails_at_once, set_up, tear_down),
        fixture_test(command_queued_ones_fail_when_no_thread_is_left, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
