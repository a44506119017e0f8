/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of any length in little memory: /numbers generates a response as fast as the client reads it, and
 * /sum adds up the bytes of a request body as they arrive. */
#include <errno.h>
#include <monkey/server.h>
#include <stdio.h>

/* ---- Sending ---- */

struct numbers {
    uint64_t next, last;
    char line[24]; /* the current line, `at` bytes of which were copied */
    size_t at, len;
};

static void begin_line(struct numbers *n)
{
    n->len = (size_t)snprintf(n->line, sizeof n->line, "%llu\n", (unsigned long long)n->next++);
    n->at = 0;
}

/* Called only when the client can receive more data (back-pressure). Returning 0 ends the body. */
static ssize_t pull(void *ctx, char *buf, size_t cap)
{
    struct numbers *n = ctx;
    size_t done = 0;
    while (done < cap) {
        if (n->at == n->len && n->next > n->last)
            break;
        if (n->at == n->len)
            begin_line(n);
        while (n->at < n->len && done < cap)
            buf[done++] = n->line[n->at++];
    }
    return (ssize_t)done;
}

static const struct mk_body_source_ops numbers_ops = {.read = pull};

/* GET /numbers?N: the numbers from 1 to N. */
static enum mk_verdict send_numbers(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    struct numbers *n = mk_request_alloc(request, sizeof *n);
    uint64_t last;
    if (!n || !mk_num_parse(mk_request_query(request), &last)) {
        mk_response_set_status(response, n ? 400 : 503);
        return MK_ERROR;
    }
    *n = (struct numbers){.next = 1, .last = last};
    mk_response_add_header(response, MK_STR("Content-Type"), MK_STR("text/plain"));
    mk_response_set_body_source(response, &numbers_ops, n, MK_LENGTH_UNKNOWN);
    return MK_DONE;
}

/* ---- Receiving ---- */

struct sum {
    uint64_t bytes, sum;
};

/* POST /sum: after MK_WAIT, called again when more of the body has arrived. */
static enum mk_verdict add_up(struct mk_request *request, struct mk_response *response, void *data)
{
    char buf[16384];
    struct sum *s = mk_request_data(request);
    ssize_t n;
    (void)data;
    if (!s) {
        if (!(s = mk_request_alloc(request, sizeof *s)))
            return MK_ERROR;
        *s = (struct sum){0};
        mk_request_set_data(request, s);
    }
    while ((n = mk_request_read(request, buf, sizeof buf)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            s->sum += (unsigned char)buf[i];
        s->bytes += (uint64_t)n;
    }
    if (n == -EAGAIN)
        return MK_WAIT;
    if (n < 0) {
        mk_response_set_status(response, n == -EMSGSIZE ? 413 : 400);
        return MK_ERROR;
    }
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_buf_addf(&text, "%llu bytes, sum %llu\n", (unsigned long long)s->bytes, (unsigned long long)s->sum);
    mk_response_set_body(response, mk_buf_str(&text));
    return MK_DONE;
}

int main(int argc, char **argv)
{
    unsigned port;
    struct mk_server *s = mk_server_new(NULL);
    if (mk_server_set(s, "SERVER", "MaxBodySize", "1G") ||
        mk_server_add_route(s, "GET /numbers", send_numbers, NULL) ||
        mk_server_add_route(s, "POST /sum", add_up, NULL) ||
        mk_server_listen(s, argc > 1 ? argv[1] : "127.0.0.1:2001", &port)) {
        fprintf(stderr, "stream: %s\n", mk_server_error(s));
        mk_server_free(s);
        return 1;
    }
    printf("http://127.0.0.1:%u/numbers?1000000\n", port);
    fflush(stdout);
    int err = mk_server_run(s);
    mk_server_free(s);
    return err != 0;
}
