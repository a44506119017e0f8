/* SPDX-License-Identifier: Apache-2.0 */
/* Monitoring for a log shipper, a database or any other daemon: counters for Prometheus, and a health check.
 * The server runs in its own thread and never blocks the work of the program; the counters are atomic. */
#include <monkey/server.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

/* ---- The counters of the program ---- */

struct counter {
    const char *name, *help;
    atomic_ullong value;
};

static struct counter records = {"shipper_records_total", "Records that were read.", 0};
static struct counter bytes = {"shipper_bytes_total", "Bytes that were read.", 0};
static struct counter errors = {"shipper_errors_total", "Records that could not be delivered.", 0};
static struct counter *const counters[] = {&records, &bytes, &errors};

/* ---- The exporter ---- */

static enum mk_verdict send_metrics(struct mk_request *request, struct mk_response *response, void *data)
{
    char buf[4096];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    (void)request, (void)data;
    for (size_t i = 0; i < MK_LEN(counters); i++) {
        const struct counter *c = counters[i];
        mk_buf_addf(&text, "# HELP %s %s\n# TYPE %s counter\n%s %llu\n", c->name, c->help, c->name, c->name,
                    atomic_load(&c->value));
    }
    if (text.failed)
        return MK_ERROR;
    mk_response_add_header(response, MK_STR("Content-Type"),
                           MK_STR("text/plain; version=0.0.4; charset=utf-8"));
    mk_response_set_body(response, mk_buf_str(&text));
    return MK_DONE;
}

/* Healthy while at most one record in ten fails. */
static enum mk_verdict send_health(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)data;
    bool is_well = atomic_load(&errors.value) * 10 <= atomic_load(&records.value);
    mk_response_set_status(response, is_well ? 200 : 503);
    mk_response_set_body_nocopy(response, is_well ? MK_STR("ok\n") : MK_STR("error\n"));
    return MK_DONE;
}

static void complain(void *ctx, enum mk_log_level level, mk_str text)
{
    (void)ctx, (void)level;
    fprintf(stderr, "exporter: %.*s\n", MK_STR_ARG(text));
}

/* On error, prints a message and returns NULL. */
static struct mk_server *exporter_start(const char *where, unsigned *port)
{
    const struct mk_server_options options = {.size = sizeof options, .on_log = complain};
    struct mk_server *s = mk_server_new(&options);
    if (!mk_server_set(s, "SERVER", "MaxConnections", "64") &&
        !mk_server_add_route(s, "GET /metrics", send_metrics, NULL) &&
        !mk_server_add_route(s, "GET /api/v1/health", send_health, NULL) &&
        !mk_server_listen(s, where, port) && !mk_server_start(s, 1))
        return s;
    fprintf(stderr, "exporter: %s\n", mk_server_error(s));
    mk_server_free(s);
    return NULL;
}

/* ---- The program ---- */

static void work(void)
{
    atomic_fetch_add(&records.value, 1);
    atomic_fetch_add(&bytes.value, 100);
}

int main(int argc, char **argv)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    unsigned port;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct mk_server *exporter = exporter_start(argc > 1 ? argv[1] : "127.0.0.1:2001", &port);
    if (!exporter)
        return 1;
    printf("http://127.0.0.1:%u/metrics\n", port);
    fflush(stdout);
    while (sigtimedwait(&set, NULL, &pause) < 0)
        work();
    mk_server_free(exporter);
    return 0;
}
