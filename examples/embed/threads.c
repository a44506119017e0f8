/* SPDX-License-Identifier: Apache-2.0 */
/* Four threads that share one configuration. Handlers run in all of them, so shared data must be atomic or
 * protected by a lock. The main thread is free for other work; here it waits for a signal. */
#include <monkey/server.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 4, DRAIN_MS = 5000 };

static atomic_ulong n_requests;

static enum mk_verdict count(struct mk_request *request, struct mk_response *response, void *data)
{
    char buf[96];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    const struct mk_worker *worker = mk_request_worker(request);
    (void)data;
    mk_buf_addf(&text, "visit %lu, thread %u of %u\n", atomic_fetch_add(&n_requests, 1) + 1,
                mk_worker_index(worker) + 1, mk_worker_count(worker));
    mk_response_set_body(response, mk_buf_str(&text));
    return MK_DONE;
}

int main(int argc, char **argv)
{
    unsigned port;
    int number;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);

    struct mk_server *s = mk_server_new(NULL);
    if (mk_server_add_route(s, "GET /count", count, NULL) ||
        mk_server_listen(s, argc > 1 ? argv[1] : "127.0.0.1:2001", &port) || mk_server_start(s, THREADS)) {
        fprintf(stderr, "threads: %s\n", mk_server_error(s));
        mk_server_free(s);
        return 1;
    }
    printf("http://127.0.0.1:%u/count\n", port);
    fflush(stdout);
    sigwait(&set, &number);
    mk_server_stop(s, DRAIN_MS);
    int err = mk_server_wait(s);
    mk_server_free(s);
    return err != 0;
}
