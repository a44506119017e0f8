/* SPDX-License-Identifier: Apache-2.0 */
/* Fake HTTP servers for services that send requests: a second server, in a thread, on a Unix socket. The
 * package duda-http calls duda_test_backend_address() for the address of an [HTTP_CLIENT] section. */
#include "test_type.h"

#include <errno.h>
#include <monkey/mem.h>
#include <monkey/text.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RULES_MAX = 256, REQUESTS_MAX = 1024, NAME_LEN_MAX = 63, PATH_LEN_MAX = 100 };

/* The response to matching requests. */
struct rule {
    struct mk_buf method, target, type, body;
    unsigned status;
};

struct duda_test_backend {
    struct duda_test *test;
    struct duda_test_backend *next;
    char name[NAME_LEN_MAX + 1], address[PATH_LEN_MAX + sizeof "unix:"];
    struct mk_server *server;
    pthread_mutex_t lock; /* protects everything below, which the thread of the server uses as well */
    struct rule rules[RULES_MAX];
    size_t n_rules;
    struct mk_buf requests[REQUESTS_MAX]; /* "METHOD\0TARGET\0HEADERS\0BODY\0" */
    size_t n_requests;
    bool has_unexpected;
};

static struct duda_test_backend *all; /* backends of the running test */

/* ---- In the thread of the server ---- */

static bool target_matches(mk_str pattern, mk_str target)
{
    mk_str path = mk_str_first(target, mk_str_find(target, '?'));
    if (mk_str_ends(pattern, MK_STR("*")))
        return mk_str_starts(target, mk_str_first(pattern, pattern.len - 1));
    return mk_str_eq(pattern, target) || mk_str_eq(pattern, path);
}

/* The rule that was added last wins. */
static const struct rule *find_rule(const struct duda_test_backend *b, struct mk_request *request)
{
    for (size_t i = b->n_rules; i-- > 0;) {
        const struct rule *rule = &b->rules[i];
        if (mk_str_eq(mk_buf_str(&rule->method), mk_request_method_text(request)) &&
            target_matches(mk_buf_str(&rule->target), mk_request_target(request)))
            return rule;
    }
    return NULL;
}

/* A request while its body arrives. */
struct arrival {
    struct mk_buf body;
};

static void free_arrival(void *ctx)
{
    mk_buf_free(&((struct arrival *)ctx)->body);
}

static void record_request(struct duda_test_backend *b, struct mk_request *request, mk_str body)
{
    mk_str name, value;
    if (b->n_requests == REQUESTS_MAX)
        return;
    struct mk_buf *text = &b->requests[b->n_requests++];
    *text = mk_buf_growing(TESTER_BODY_MAX);
    mk_buf_addf(text, "%.*s%c%.*s%c", MK_STR_ARG(mk_request_method_text(request)), '\0',
                MK_STR_ARG(mk_request_target(request)), '\0');
    for (size_t i = 0; mk_request_header_at(request, i, &name, &value); i++)
        mk_buf_addf(text, "%.*s: %.*s\r\n", MK_STR_ARG(name), MK_STR_ARG(value));
    mk_buf_add_char(text, '\0');
    mk_buf_add(text, body);
    mk_buf_add_char(text, '\0');
}

static enum mk_verdict respond(struct duda_test_backend *b, struct mk_request *request,
                               struct mk_response *response, mk_str body)
{
    pthread_mutex_lock(&b->lock);
    const struct rule *rule = find_rule(b, request);
    record_request(b, request, body);
    if (rule) {
        (void)mk_response_set_status(response, rule->status);
        (void)mk_response_set_header(response, MK_STR("Content-Type"), mk_buf_str(&rule->type));
        (void)mk_response_set_body(response, rule->body.p ? mk_buf_str(&rule->body) : MK_STR(""));
    } else {
        b->has_unexpected = true;
        printf("  backend `%s`: unexpected request: %.*s %.*s\n", b->name,
               MK_STR_ARG(mk_request_method_text(request)), MK_STR_ARG(mk_request_target(request)));
        (void)mk_response_set_status(response, 501);
        (void)mk_response_set_body(response, MK_STR("unexpected request\n"));
    }
    pthread_mutex_unlock(&b->lock);
    return MK_DONE;
}

static enum mk_verdict on_backend_request(struct mk_request *request, struct mk_response *response,
                                          void *data)
{
    static const char key;
    struct arrival *a = mk_request_attached(request, &key);
    char buf[16 * 1024];
    ssize_t n;
    if (!a) {
        a = mk_request_alloc(request, sizeof *a);
        if (!a)
            return MK_ERROR;
        a->body = mk_buf_growing(TESTER_BODY_MAX);
        if (mk_request_attach(request, &key, a, free_arrival))
            return MK_ERROR;
    }
    while ((n = mk_request_read(request, buf, sizeof buf)) > 0)
        mk_buf_add(&a->body, mk_str_of(buf, (size_t)n));
    if (n == -EAGAIN)
        return MK_WAIT;
    return n < 0 ? MK_ERROR : respond(data, request, response, a->body.p ? mk_buf_str(&a->body) : MK_STR(""));
}

/* ---- In the test ---- */

static bool start_backend(struct duda_test_backend *b)
{
    const struct mk_server_options options = {.size = sizeof options};
    b->server = mk_server_new(&options);
    bool ok = b->server && mk_server_set(b->server, "SERVER", "MaxBodySize", "256M") == 0 &&
              mk_server_add_route(b->server, "/*rest", on_backend_request, b) == 0 &&
              mk_server_listen(b->server, b->address, NULL) == 0 && mk_server_start(b->server, 1) == 0;
    if (!ok)
        printf("  backend `%s`: %s\n", b->name, b->server ? mk_server_error(b->server) : "out of memory");
    return ok;
}

struct duda_test_backend *duda_test_backend_start(struct duda_test *t, const char *name)
{
    for (struct duda_test_backend *b = t->backends; b; b = b->next)
        if (strcmp(b->name, name) == 0)
            return b;
    struct duda_test_backend *b = mk_mem_zalloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->test = t;
    snprintf(b->name, sizeof b->name, "%s", name);
    int len = snprintf(b->address, sizeof b->address, "unix:%s/http-%p", tester_folder(), (void *)b);
    pthread_mutex_init(&b->lock, NULL);
    b->next = t->backends;
    t->backends = all = b;
    if (tester_server_is_started() || len < 0 || len >= (int)sizeof b->address || !start_backend(b)) {
        if (tester_server_is_started())
            printf("  backend `%s`: create it before the first request of the test\n", name);
        t->failed = true;
    }
    return b;
}

__attribute__((visibility("default"))) const char *duda_test_backend_address(const char *name)
{
    for (const struct duda_test_backend *b = all; b; b = b->next)
        if (strcmp(b->name, name) == 0)
            return b->address;
    return NULL;
}

static struct mk_buf copy_text(mk_str text)
{
    struct mk_buf buf = mk_buf_growing(TESTER_BODY_MAX);
    mk_buf_add(&buf, text);
    return buf;
}

void duda_test_backend_respond(struct duda_test_backend *b, const char *route, unsigned status,
                               const char *type, const char *body)
{
    mk_str target = mk_str_from_c(route), method = mk_str_cut(&target, ' ');
    if (!b)
        return;
    if (!target.len || b->n_rules == RULES_MAX) {
        printf("  backend `%s`: %s\n", b->name,
               target.len ? "it has too many responses" : "a route is a method and a target: \"GET /\"");
        b->test->failed = true;
        return;
    }
    pthread_mutex_lock(&b->lock);
    b->rules[b->n_rules++] =
        (struct rule){copy_text(method), copy_text(target), copy_text(mk_str_from_c(type)),
                      copy_text(mk_str_from_c(body)), status};
    pthread_mutex_unlock(&b->lock);
}

size_t duda_test_backend_count(struct duda_test_backend *b)
{
    if (!b)
        return 0;
    pthread_mutex_lock(&b->lock);
    size_t n = b->n_requests;
    pthread_mutex_unlock(&b->lock);
    return n;
}

struct duda_test_backend_request duda_test_backend_received(struct duda_test_backend *b, size_t i)
{
    struct duda_test_backend_request out = {.method = MK_STR_NULL};
    if (!b || i >= duda_test_backend_count(b))
        return out;
    pthread_mutex_lock(&b->lock);
    mk_str text = tester_keep(b->test, mk_str_first(mk_buf_str(&b->requests[i]), b->requests[i].len));
    pthread_mutex_unlock(&b->lock);
    out.method = mk_str_cut(&text, '\0');
    out.target = mk_str_cut(&text, '\0');
    out.headers = mk_str_cut(&text, '\0');
    out.body = mk_str_first(text, text.len - 1);
    return out;
}

static void free_backend(struct duda_test_backend *b)
{
    mk_server_stop(b->server, 0);
    (void)mk_server_wait(b->server);
    mk_server_free(b->server);
    if (b->has_unexpected)
        b->test->failed = true;
    for (size_t i = 0; i < b->n_rules; i++) {
        struct rule *rule = &b->rules[i];
        mk_buf_free(&rule->method);
        mk_buf_free(&rule->target);
        mk_buf_free(&rule->type);
        mk_buf_free(&rule->body);
    }
    for (size_t i = 0; i < b->n_requests; i++)
        mk_buf_free(&b->requests[i]);
    (void)unlink(b->address + sizeof "unix:" - 1);
    pthread_mutex_destroy(&b->lock);
    mk_mem_free(b);
}

void tester_backends_stop(struct duda_test *t)
{
    while (t->backends) {
        struct duda_test_backend *b = t->backends;
        t->backends = all = b->next;
        free_backend(b);
    }
}
