/* SPDX-License-Identifier: Apache-2.0 */
/* What gateways do with responses, as the query says: fails?at=N&status=S&wait=1&... */
#include <errno.h>
#include <monkey/plugin.h>

static mk_str word_of(const struct mk_request *request, const char *name)
{
    mk_str rest = mk_request_query(request);
    while (rest.p) {
        mk_str value = mk_str_cut(&rest, '&'), word = mk_str_cut(&value, '=');
        if (mk_str_eq(word, mk_str_from_c(name)))
            return value;
    }
    return (mk_str){NULL, 0};
}

static uint64_t number_of(const struct mk_request *request, const char *name, uint64_t otherwise)
{
    uint64_t n;
    return mk_num_parse(word_of(request, name), &n) ? n : otherwise;
}

static enum mk_verdict refuse(struct mk_response *response, unsigned status)
{
    mk_response_set_status(response, status);
    return MK_REFUSE;
}

/* ---- fails?at=N&status=S: a source of unknown length that fails behind N bytes; early=1 says the status
 * before it is pulled, reads=1 reads the content of the request first. ---- */

struct fails {
    struct mk_request *request;
    struct mk_response *response;
    uint64_t left;
};

static ssize_t pull_failing(void *ctx, char *room, size_t cap)
{
    struct fails *f = ctx;
    size_t n = f->left < cap ? (size_t)f->left : cap;
    if (n == 0) {
        if (!word_of(f->request, "early").p)
            mk_response_fail(f->response, (unsigned)number_of(f->request, "status", 0));
        return -EPIPE;
    }
    memset(room, 'x', n);
    f->left -= n;
    return (ssize_t)n;
}

static int read_all(struct mk_request *request)
{
    char room[1000];
    ssize_t n;
    while ((n = mk_request_read(request, room, sizeof room)) > 0)
        continue;
    return (int)n;
}

static enum mk_verdict fails(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_source_ops ops = {.pull = pull_failing};
    struct fails *f = mk_request_alloc(request, sizeof *f);
    (void)data;
    if (!f)
        return refuse(response, 503);
    *f = (struct fails){.request = request, .response = response, .left = number_of(request, "at", 0)};
    if (word_of(request, "reads").p && read_all(request) == -EAGAIN)
        return MK_WAIT;
    if (word_of(request, "early").p && mk_response_fail(response, (unsigned)number_of(request, "status", 0)))
        return refuse(response, 501);
    mk_response_add_static(response, MK_STR("Cache-Control"), MK_STR("max-age=99"));
    mk_response_add_static(response, MK_STR("Content-Type"), MK_STR("text/plain"));
    return mk_response_set_source(response, &ops, f, MK_LENGTH_UNKNOWN) ? refuse(response, 503) : MK_DONE;
}

/* ---- The plugin ---- */

static int host(struct mk_config *config, struct mk_host *h, void *data, void **host_data)
{
    (void)config, (void)data;
    *host_data = h;
    return 0;
}

static void on_response(struct mk_request *request, struct mk_response *response, void *host_data)
{
    (void)request, (void)host_data;
    mk_response_add_static(response, MK_STR("X-Seen"), MK_STR("once"));
}

static const struct mk_handler fails_handler = {.name = "fails", .handle = fails};

MK_PLUGIN(gateway) = {
    MK_PLUGIN_HEAD,
    .name = "gateway",
    .version = "1",
    .help = "Does what gateways do.",
    .handlers = (const struct mk_handler *const[]){&fails_handler, NULL},
    .host = host,
    .on_response = on_response,
};
