/* SPDX-License-Identifier: Apache-2.0 */
/* Deferred responses: handlers queue orders for a thread of the program, which processes them one at a time
 * and resumes the requests. If the client has disconnected, the request reference reports that the request is
 * gone, and the thread skips the work. */
#include <monkey/request_ref.h>
#include <monkey/server.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- The queue: handlers add orders, the thread takes them ---- */

struct order {
    struct order *next;
    struct mk_request_ref *request_ref; /* reference to the waiting request; NULL stops the thread */
    uint64_t number, result;
};

static struct order *first, **last = &first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;

static void put(struct order *o)
{
    pthread_mutex_lock(&lock);
    *last = o;
    last = &o->next;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&lock);
}

static struct order *take(void)
{
    pthread_mutex_lock(&lock);
    while (!first)
        pthread_cond_wait(&not_empty, &lock);
    struct order *o = first;
    first = o->next;
    if (!first)
        last = &first;
    pthread_mutex_unlock(&lock);
    return o;
}

static uint64_t count_primes(uint64_t limit)
{
    uint64_t n = 0;
    for (uint64_t i = 2; i < limit; i++) {
        uint64_t k = 2;
        while (k * k <= i && i % k)
            k++;
        n += k * k > i;
    }
    return n;
}

/* ---- Requests ---- */

/* Allocated with mk_request_alloc(), so it is freed with the request. */
struct waiting {
    bool is_done;
    uint64_t result;
};

/* Runs in the thread of the request; `request` is NULL if the request has already ended. */
static void deliver(struct mk_request *request, void *ctx)
{
    struct order *o = ctx;
    struct waiting *w = request ? mk_request_data(request) : NULL;
    if (w)
        *w = (struct waiting){.is_done = true, .result = o->result};
    free(o);
}

/* Processes orders in a thread of the program until an order has no request reference. */
static void *work(void *unused)
{
    struct order *o;
    while ((o = take())->request_ref) {
        struct mk_request_ref *ref = o->request_ref;
        if (!mk_request_ref_is_gone(ref))
            o->result = count_primes(o->number);
        if (mk_request_ref_resume(ref, deliver, o))
            free(o);
        mk_request_ref_free(ref);
    }
    free(o);
    return unused;
}

static bool begin(struct mk_request *request, uint64_t number)
{
    struct waiting *w = mk_request_alloc(request, sizeof *w);
    struct order *o = calloc(1, sizeof *o);
    if (!w || !o || !(o->request_ref = mk_request_ref_new(request))) {
        free(o);
        return false;
    }
    *w = (struct waiting){0};
    o->number = number;
    mk_request_set_data(request, w);
    mk_request_cancel_on_disconnect(request);
    put(o);
    return true;
}

/* Called when the request arrives, and again after mk_request_ref_resume(). */
static enum mk_verdict answer(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct waiting *w = mk_request_data(request);
    const struct mk_router_param *limit = mk_server_param(request, "below");
    char buf[64];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    (void)data;
    if (!w)
        return begin(request, limit->as_uint) ? MK_WAIT : MK_ERROR;
    if (!w->is_done)
        return MK_WAIT;
    mk_buf_addf(&text, "%llu\n", (unsigned long long)w->result);
    mk_response_set_body(response, mk_buf_str(&text));
    return MK_DONE;
}

int main(int argc, char **argv)
{
    unsigned port;
    int number;
    pthread_t worker;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct order *end = calloc(1, sizeof *end);
    struct mk_server *s = mk_server_new(NULL);
    if (!end || mk_server_add_route(s, "GET /primes/:below<uint>", answer, NULL) ||
        mk_server_listen(s, argc > 1 ? argv[1] : "127.0.0.1:2001", &port) || mk_server_start(s, 2) ||
        pthread_create(&worker, NULL, work, NULL)) {
        fprintf(stderr, "later: %s\n", mk_server_error(s));
        mk_server_free(s);
        free(end);
        return 1;
    }
    printf("http://127.0.0.1:%u/primes/100000\n", port);
    fflush(stdout);
    sigwait(&set, &number);
    mk_server_stop(s, 5000);
    int err = mk_server_wait(s);
    put(end);
    pthread_join(worker, NULL);
    mk_server_free(s);
    return err != 0;
}
