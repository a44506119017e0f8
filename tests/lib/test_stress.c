/* SPDX-License-Identifier: Apache-2.0 */
/* Stress test of servers with logs and plugins: many clients send requests over HTTP/1.1 and HTTP/2,
 * disconnect and reconnect, other threads resume handlers, and some rounds stop the server under load. The
 * program asserts little: the sanitizers detect errors. lib_test_stress [ROUNDS [THREADS]] */
#include <monkey/request_ref.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/embed.h"

enum { CLIENTS = 4, HELPERS = 2, ASKED = 60, QUEUE = 256 };

static unsigned rounds = 3, threads = 3;
static char folder[64];

/* ---- Request references that helper threads resume ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct mk_request_ref *waiting[QUEUE];
    unsigned n;
    bool ends;
} tickets = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static bool enqueue_ref(struct mk_request_ref *t)
{
    pthread_mutex_lock(&tickets.lock);
    bool fits = tickets.n < QUEUE;
    if (fits)
        tickets.waiting[tickets.n++] = t;
    pthread_cond_signal(&tickets.more);
    pthread_mutex_unlock(&tickets.lock);
    return fits;
}

static struct mk_request_ref *dequeue_ref(void)
{
    struct mk_request_ref *t = NULL;
    pthread_mutex_lock(&tickets.lock);
    while (!tickets.n && !tickets.ends)
        pthread_cond_wait(&tickets.more, &tickets.lock);
    if (tickets.n)
        t = tickets.waiting[--tickets.n];
    pthread_mutex_unlock(&tickets.lock);
    return t;
}

static atomic_uint n_brought;

static void set_data(struct mk_request *request, void *ctx)
{
    static char text[] = "later";
    (void)ctx;
    if (request)
        mk_request_set_data(request, text);
    atomic_fetch_add(&n_brought, 1);
}

static void *run_helper(void *ctx)
{
    struct mk_request_ref *t;
    (void)ctx;
    while ((t = dequeue_ref())) {
        int e = mk_request_ref_resume(t, set_data, NULL);
        assert_true(e == 0 || e == -ESTALE);
        mk_request_ref_free(t);
    }
    return NULL;
}

static const char key;

static enum mk_verdict answer_later(struct mk_request *request, struct mk_response *response, void *data)
{
    const char *text = mk_request_data(request);
    (void)data;
    if (text) {
        mk_request_log(request, MK_LOG_INFO, "answered by another thread");
        mk_response_set_body_nocopy(response, mk_str_from_c(text));
        return MK_DONE;
    }
    if (mk_request_attached(request, &key))
        return MK_WAIT;
    struct mk_request_ref *t = mk_request_ref_new(request);
    if (!t || mk_request_attach(request, &key, t, NULL) || !enqueue_ref(t)) {
        mk_request_ref_free(t);
        return MK_ERROR;
    }
    return MK_WAIT;
}

static void compute(void *ctx)
{
    *(int *)ctx += 1;
}

static void computed(void *ctx)
{
    free(ctx);
}

static enum mk_verdict answer_aside(struct mk_request *request, struct mk_response *response, void *data)
{
    int *job = calloc(1, sizeof *job);
    if (job && mk_worker_offload(mk_request_worker(request), compute, computed, job))
        free(job);
    return respond_hello(request, response, data);
}

/* ---- Clients ---- */

static const char *path_of(unsigned i)
{
    static const char *const paths[] = {"/hello", "/later", "/file.txt", "/missing", "/aside", "/"};
    return paths[i % MK_LEN(paths)];
}

static void request_and_disconnect(int fd, unsigned i)
{
    char text[256], buffer[8192];
    int len = snprintf(text, sizeof text,
                       "GET %s HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n",
                       path_of(i));
    (void)!send(fd, text, (size_t)len, MSG_NOSIGNAL);
    while (i % 7 && recv(fd, buffer, sizeof buffer, 0) > 0)
        ;
}

static atomic_uint n_by_http2;

/* Receives frames up to the first frame of stream 1, or until the connection ends. */
static void receive_http2(int fd)
{
    unsigned char head[9], buffer[16384];
    while (recv(fd, head, sizeof head, MSG_WAITALL) == sizeof head) {
        size_t len = (size_t)(head[0] << 16 | head[1] << 8 | head[2]);
        if (head[3] == 1 && head[8] == 1)
            atomic_fetch_add(&n_by_http2, 1);
        if (head[8] == 1 || (len && recv(fd, buffer, len, MSG_WAITALL) != (ssize_t)len))
            return;
    }
}

/* The preface, empty SETTINGS, and HEADERS that open and end stream 1 (RFC 9113): GET, http, the path, and
 * the authority "a" (RFC 7541). */
static void send_http2_request(int fd, unsigned i)
{
    const char *path = path_of(i);
    char text[256];
    int len = snprintf(text, sizeof text, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n%c%c%c\4%c%c%c%c%c", 0, 0, 0, 0, 0,
                       0, 0, 0);
    len += snprintf(text + len, sizeof text - (size_t)len, "%c%c%c\1\5%c%c%c\1\x82\x86\4%c%s\1\1a", 0, 0,
                    (char)(strlen(path) + 7), 0, 0, 0, (char)strlen(path), path);
    (void)!send(fd, text, (size_t)len, MSG_NOSIGNAL);
    receive_http2(fd);
}

static void *be_a_client(void *ctx)
{
    unsigned port = *(unsigned *)ctx;
    for (unsigned i = 0; i < ASKED; i++) {
        int fd = dial(port);
        if (fd < 0)
            continue;
        if (i % 5) /* thus all threads start with HTTP/2 at once, and the first one loads the module */
            request_and_disconnect(fd, i);
        else
            send_http2_request(fd, i);
        close(fd);
    }
    return NULL;
}

/* ---- Servers ---- */

static void set_up(struct mk_server *s)
{
    static const char *const plugins[] = {"compress", "headers", "dirlisting", "metrics", "logger"};
    char path[128];
    for (size_t i = 0; i < MK_LEN(plugins); i++)
        assert_int_equal(mk_server_set(s, "PLUGINS", "Load", plugins[i]), 0);
    snprintf(path, sizeof path, "%s/access.log", folder);
    assert_int_equal(mk_server_set(s, "SERVER", "AccessLog", path), 0);
    snprintf(path, sizeof path, "%s/error.log", folder);
    assert_int_equal(mk_server_set(s, "SERVER", "ErrorLog", path), 0);
    assert_int_equal(mk_server_set(s, "SERVER", "LogLevel", "debug"), 0);
    assert_int_equal(mk_server_set(s, "HEADERS", "Secure", "on"), 0);
    assert_int_equal(mk_server_add_route(s, "GET /hello", respond_hello, NULL), 0);
    assert_int_equal(mk_server_add_route(s, "GET /later", answer_later, NULL), 0);
    assert_int_equal(mk_server_add_route(s, "GET /aside", answer_aside, NULL), 0);
    assert_int_equal(mk_server_add_vhost(s, "a", folder), 0);
    assert_int_equal(mk_server_set(s, "ROUTES", "/*", "static"), 0);
}

static void serve_once(unsigned round)
{
    pthread_t clients[CLIENTS];
    unsigned port;
    struct mk_server *s = mk_server_new(NULL);
    set_up(s);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", &port), 0);
    if (mk_server_start(s, threads))
        fail_msg("%s", mk_server_error(s));
    for (int i = 0; i < CLIENTS; i++)
        pthread_create(&clients[i], NULL, be_a_client, &port);
    if (round % 2) { /* stops the server in the middle of the traffic */
        usleep(1000 * (round % 16));
        mk_server_stop(s, round % 4 == 1 ? 0 : 5000);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i], NULL);
    mk_server_stop(s, MK_FOREVER);
    mk_server_stop(s, 1000);
    assert_int_equal(mk_server_wait(s), 0);
    mk_server_free(s);
}

static void threads_share_a_configuration_under_stress(void **state)
{
    pthread_t helpers[HELPERS];
    (void)state;
    for (int i = 0; i < HELPERS; i++)
        pthread_create(&helpers[i], NULL, run_helper, NULL);
    for (unsigned i = 0; i < rounds; i++)
        serve_once(i);
    pthread_mutex_lock(&tickets.lock);
    tickets.ends = true;
    pthread_cond_broadcast(&tickets.more);
    pthread_mutex_unlock(&tickets.lock);
    for (int i = 0; i < HELPERS; i++)
        pthread_join(helpers[i], NULL);
    assert_true(atomic_load(&n_brought) > 0);
    assert_true(atomic_load(&n_by_http2) > 0 || !HAS_HTTP2);
}

static int make_folder(void **state)
{
    char name[128];
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/monkey-stress-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(name, sizeof name, "%s/file.txt", folder);
    FILE *f = fopen(name, "w");
    for (int i = 0; i < 2000; i++)
        fputs("some text that can be compressed\n", f);
    return fclose(f);
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"file.txt", "access.log", "error.log"};
    char name[128];
    (void)state;
    for (size_t i = 0; i < MK_LEN(names); i++) {
        snprintf(name, sizeof name, "%s/%s", folder, names[i]);
        (void)unlink(name);
    }
    return rmdir(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_share_a_configuration_under_stress)};
    rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : rounds;
    threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : threads;
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
