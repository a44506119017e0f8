/* SPDX-License-Identifier: Apache-2.0 */
/* Generates responses on demand: `made` sends the body that the query describes; `events` streams the strings
 * that the handler `say` receives, until `say` gets an empty query. */
#include <errno.h>
#include <monkey/plugin.h>
#include <stdio.h>
#include <stdlib.h>

static enum mk_verdict refuse(struct mk_response *response, unsigned status)
{
    mk_response_set_status(response, status);
    return MK_ERROR;
}

/* ---- made?size=N&type=T&known=1&as=text|raw&breaks=1&status=N&field=NAME:VALUE&... ---- */

struct made {
    uint64_t at, size;
    bool breaks, known;
    mk_str as;
};

/* Fills the buffer with lines of nine digits. */
static size_t fill(uint64_t from, char *buffer, size_t cap)
{
    char line[32];
    size_t n = 0;
    while (n < cap) {
        snprintf(line, sizeof line, "%09llu\n", (unsigned long long)((from + n) / 10 % 1000000000));
        buffer[n] = line[(from + n) % 10];
        n++;
    }
    return n;
}

static ssize_t pull(void *ctx, char *buffer, size_t cap)
{
    struct made *m = ctx;
    size_t n = m->size - m->at < cap ? (size_t)(m->size - m->at) : cap;
    if (n == 0)
        return m->breaks ? -EIO : 0;
    m->at += fill(m->at, buffer, n);
    return (ssize_t)n;
}

static const struct mk_body_source_ops made_ops = {.read = pull};

static void read_word(struct made *m, struct mk_response *response, mk_str name, mk_str value)
{
    uint64_t n = 0;
    (void)!mk_num_parse(value, &n);
    if (mk_str_eq(name, MK_STR("size")))
        m->size = n;
    else if (mk_str_eq(name, MK_STR("known")))
        m->known = true;
    else if (mk_str_eq(name, MK_STR("breaks")))
        m->breaks = true;
    else if (mk_str_eq(name, MK_STR("as")))
        m->as = value;
    else if (mk_str_eq(name, MK_STR("status")))
        mk_response_set_status(response, (unsigned)n);
    else if (mk_str_eq(name, MK_STR("field"))) {
        mk_str field = mk_str_cut(&value, ':');
        mk_response_add_header(response, field, value);
    }
}

static enum mk_verdict make_text(struct made *m, struct mk_response *response)
{
    size_t size = (size_t)m->size;
    char *buffer = size == m->size ? malloc(size + 1) : NULL;
    if (!buffer)
        return refuse(response, 503);
    fill(0, buffer, size);
    int e = mk_response_set_body(response, mk_str_of(buffer, size));
    free(buffer);
    return e ? refuse(response, 503) : MK_DONE;
}

static enum mk_verdict make(struct mk_request *request, struct mk_response *response, void *data)
{
    struct made *m = mk_request_alloc(request, sizeof *m);
    struct mk_buf query = mk_buf_growing(64 * 1024);
    (void)data;
    if (!m)
        return refuse(response, 503);
    *m = (struct made){.size = 10000};
    mk_str rest = mk_request_query(request);
    while (rest.p) {
        mk_str value = mk_str_cut(&rest, '&'), name = mk_str_cut(&value, '=');
        mk_buf_clear(&query);
        mk_url_unescape(&query, value);
        read_word(m, response, name, mk_str_eq(name, MK_STR("as")) ? value : mk_buf_str(&query));
    }
    mk_buf_free(&query);
    if (!mk_response_header(response, MK_STR("Content-Type")).p)
        mk_response_add_header_nocopy(response, MK_STR("Content-Type"), MK_STR("text/plain"));
    if (mk_str_eq(m->as, MK_STR("text")))
        return make_text(m, response);
    if (mk_str_eq(m->as, MK_STR("raw")))
        return mk_response_set_raw_source(response, &made_ops, m) ? refuse(response, 503) : MK_DONE;
    int64_t length = m->known ? (int64_t)m->size + m->breaks : MK_LENGTH_UNKNOWN;
    return mk_response_set_body_source(response, &made_ops, m, length) ? refuse(response, 503) : MK_DONE;
}

/* ---- events, and say?TEXT, which sends to the most recent subscriber ---- */

struct listener {
    struct mk_request *request;
    struct mk_buf events;
    bool ends;
};

static struct listener *last;

static ssize_t pull_events(void *ctx, char *buffer, size_t cap)
{
    struct listener *l = ctx;
    size_t n = l->events.len < cap ? l->events.len : cap;
    if (n == 0)
        return l->ends ? 0 : -EAGAIN;
    memcpy(buffer, l->events.p, n);
    mk_buf_consume(&l->events, n);
    return (ssize_t)n;
}

static void stop_listening(void *ctx)
{
    struct listener *l = ctx;
    if (last == l)
        last = NULL;
    mk_buf_free(&l->events);
    free(l);
}

static const struct mk_body_source_ops listener_ops = {.read = pull_events, .close = stop_listening};

static enum mk_verdict listen(struct mk_request *request, struct mk_response *response, void *data)
{
    struct listener *l = calloc(1, sizeof *l);
    (void)data;
    if (!l)
        return refuse(response, 503);
    *l = (struct listener){.request = request, .events = mk_buf_growing(1 << 20)};
    last = l;
    mk_response_add_header_nocopy(response, MK_STR("Content-Type"), MK_STR("text/event-stream"));
    return mk_response_set_body_source(response, &listener_ops, l, MK_LENGTH_UNKNOWN) ? refuse(response, 503)
                                                                                      : MK_DONE;
}

static enum mk_verdict send_event(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    if (!last)
        return refuse(response, 409);
    mk_str text = mk_request_query(request);
    if (text.p)
        mk_buf_addf(&last->events, "data: %.*s\n\n", MK_STR_ARG(text));
    else
        last->ends = true;
    mk_request_resume(last->request);
    return mk_response_set_body_nocopy(response, MK_STR("said\n")) ? refuse(response, 503) : MK_DONE;
}

static const struct mk_handler made_handler = {.name = "made", .handle = make},
                               events_handler = {.name = "events", .handle = listen},
                               events_input_handler = {.name = "say", .handle = send_event};

MK_PLUGIN(body_sources) = {
    MK_PLUGIN_HEAD,
    .name = "body-sources",
    .version = "1",
    .help = "Answers as a test wants.",
    .handlers = (const struct mk_handler *const[]){&made_handler, &events_handler, &events_input_handler,
                                                   NULL},
};
