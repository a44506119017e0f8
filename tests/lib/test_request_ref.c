/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that respond later, from other threads, or never. */
#include <monkey/request_ref.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/embed.h"

/* The data that a handler passes to another thread, and the result. */
struct job {
    struct mk_request_ref *ticket;
    int result;  /* result of mk_request_ref_resume() */
    bool ended;  /* in_loop was called without a request */
    bool called; /* in_loop was called with a request */
};

static const char key;
static struct job job;
static atomic_int n_waiting;

static int reset(void **state)
{
    (void)state;
    job = (struct job){0};
    atomic_store(&n_waiting, 0);
    return 0;
}

/* Waits until the job has data. */
static enum mk_verdict wait_for_data(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    const char *text = mk_request_data(request);
    if (text) {
        mk_response_set_body_nocopy(response, mk_str_from_c(text));
        return MK_DONE;
    }
    if (!mk_request_attached(request, &key)) {
        job.ticket = mk_request_ref_new(request);
        assert_int_equal(mk_request_attach(request, &key, &job, NULL), 0);
        mk_request_cancel_on_disconnect(request);
        atomic_fetch_add(&n_waiting, 1);
    }
    return job.ticket ? MK_WAIT : MK_ERROR;
}

static void set_data(struct mk_request *request, void *ctx)
{
    static char text[] = "from elsewhere";
    struct job *j = ctx;
    j->called = true;
    j->ended = request == NULL;
    if (request)
        mk_request_set_data(request, text);
}

static void request_ref_resumes_request_from_another_thread(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /", wait_for_data, NULL, &port);
    assert_int_equal(mk_server_start(s, 2), 0);
    int client = dial(port);
    send_request_on(client, "GET", "/");
    wait_until(&n_waiting, 1);
    assert_false(mk_request_ref_is_gone(job.ticket));
    /* no change: the handler continues to wait */
    assert_int_equal(mk_request_ref_resume(job.ticket, NULL, NULL), 0);
    assert_int_equal(mk_request_ref_resume(job.ticket, set_data, &job), 0);
    assert_holds(receive_all(client), "from elsewhere");
    mk_server_free(s);
    assert_true(job.called);
    assert_false(job.ended);
    assert_true(mk_request_ref_is_gone(job.ticket));
    assert_int_equal(mk_request_ref_resume(job.ticket, set_data, &job), -ESTALE);
    mk_request_ref_free(job.ticket);
    mk_request_ref_free(NULL);
}

static void request_ref_reports_ended_request(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /", wait_for_data, NULL, &port);
    assert_int_equal(mk_server_start(s, 1), 0);
    int client = dial(port);
    send_request_on(client, "GET", "/");
    wait_until(&n_waiting, 1);
    close(client);
    for (int i = 0; !mk_request_ref_is_gone(job.ticket); i++) {
        assert_true(i < PATIENCE_S * 1000);
        usleep(1000);
    }
    assert_int_equal(mk_request_ref_resume(job.ticket, set_data, &job), -ESTALE);
    assert_false(job.called);
    mk_request_ref_free(job.ticket);
    mk_server_free(s);
}

/* The request ends after the call but before the next iteration of the loop, in which the call would run. */
static void request_ref_call_is_dropped_when_request_ends_meanwhile(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /", wait_for_data, NULL, &port);
    assert_true(mk_server_fd(s) >= 0);
    int client = dial(port);
    send_request_on(client, "GET", "/");
    for (int i = 0; atomic_load(&n_waiting) == 0; i++) {
        assert_true(i < PATIENCE_S * 1000);
        usleep(1000);
        assert_int_equal(mk_server_step(s), 1);
    }
    assert_int_equal(mk_request_ref_resume(job.ticket, set_data, &job), 0);
    mk_server_free(s); /* ends the request before the call is made */
    assert_true(job.called);
    assert_true(job.ended);
    assert_int_equal(mk_request_ref_resume(job.ticket, set_data, &job), -ESTALE);
    mk_request_ref_free(job.ticket);
    close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(request_ref_resumes_request_from_another_thread, reset),
        cmocka_unit_test_setup(request_ref_reports_ended_request, reset),
        cmocka_unit_test_setup(request_ref_call_is_dropped_when_request_ends_meanwhile, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
