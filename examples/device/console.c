/* SPDX-License-Identifier: Apache-2.0 */
/* A console over WebSocket. The command `test` runs in its own thread and reports to the client that started
 * it, as long as that client is connected. */
#include "device.h"

#include <monkey/request_ref.h>
#include <monkey/websocket.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* A session lives as long as its request, which ends after on_close(). */
struct session {
    struct mk_websocket *socket; /* NULL: closed */
};

static const char session_key; /* its address is the key of mk_request_attach() */

/* ---- The self-test ---- */

static struct {
    pthread_mutex_t lock; /* protects has_thread */
    bool has_thread;      /* there is a thread to join */
    pthread_t thread;
    atomic_bool is_running;
} test = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Runs in the thread of the request, which is NULL if it has ended. */
static void send_result(struct mk_request *request, void *ctx)
{
    struct session *session = request ? mk_request_attached(request, &session_key) : NULL;
    if (session && session->socket)
        (void)mk_websocket_send(session->socket, MK_WEBSOCKET_TEXT, mk_str_from_c(ctx));
}

/* A thread of the program: it may block. */
static void *run_test(void *ctx)
{
    static char results[][16] = {"memory ok", "flash ok", "sensor ok", "test passed"};
    const struct timespec pause = {.tv_nsec = 50000000};
    struct mk_request_ref *ref = ctx;
    for (size_t i = 0; i < MK_LEN(results) && !mk_request_ref_is_gone(ref); i++) {
        nanosleep(&pause, NULL);
        (void)mk_request_ref_resume(ref, send_result, results[i]);
    }
    mk_request_ref_free(ref);
    atomic_store(&test.is_running, false);
    return NULL;
}

/* Joins the thread of the last test, which has ended or is about to. */
static void test_join(void)
{
    pthread_mutex_lock(&test.lock);
    if (test.has_thread)
        pthread_join(test.thread, NULL);
    test.has_thread = false;
    pthread_mutex_unlock(&test.lock);
}

static const char *test_start(struct mk_request *request)
{
    if (atomic_exchange(&test.is_running, true))
        return "a test is already running";
    test_join();
    struct mk_request_ref *ref = mk_request_ref_new(request);
    pthread_mutex_lock(&test.lock);
    test.has_thread = ref && !pthread_create(&test.thread, NULL, run_test, ref);
    bool has_started = test.has_thread;
    pthread_mutex_unlock(&test.lock);
    if (has_started)
        return "test started";
    mk_request_ref_free(ref);
    atomic_store(&test.is_running, false);
    return "out of memory";
}

void console_stop(void)
{
    test_join();
}

/* ---- The WebSocket ---- */

static void on_message(void *ctx, struct mk_websocket *socket, enum mk_websocket_kind kind, mk_str command)
{
    const char *reply = "commands: test, version";
    (void)ctx, (void)kind;
    if (mk_str_eq(command, MK_STR("version")))
        reply = "2.0.1";
    else if (mk_str_eq(command, MK_STR("test")))
        reply = test_start(mk_websocket_request(socket));
    (void)mk_websocket_send(socket, MK_WEBSOCKET_TEXT, mk_str_from_c(reply));
}

static void on_close(void *ctx, struct mk_websocket *socket, unsigned code, mk_str reason)
{
    struct session *session = ctx;
    (void)socket, (void)code, (void)reason;
    session->socket = NULL;
}

static const struct mk_websocket_ops ops = {.on_message = on_message, .on_close = on_close};
static const struct mk_websocket_options options = {.ops = &ops, .origins = "same", .message_max = 256};

static enum mk_verdict open_console(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    if (!auth_check(request, response))
        return MK_ERROR;
    struct session *session = mk_request_alloc(request, sizeof *session);
    if (!session || mk_request_attach(request, &session_key, session, NULL) ||
        mk_websocket_open(request, response, &options, session, &session->socket))
        return MK_ERROR;
    return MK_DONE;
}

int console_add(struct mk_server *s)
{
    return mk_server_add_route(s, "GET /api/console", open_console, NULL);
}
