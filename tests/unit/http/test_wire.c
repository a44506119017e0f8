/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the wire tests of tests/wire through the parsers as a connection would, in pieces of several sizes. */
#include "unit/http/wire_case.h"

#include "http/chunked.h"
#include "http/framing.h"
#include "http/target.h"

enum { FIELDS_MAX = 64, TRAILERS_MAX = 1024, FILE_MAX = 1 << 18 };

static const struct mk_request_head_limits limits = {
    .head_max = 8192, .target_max = 4096, .fields_max = FIELDS_MAX};

/* A connection: the bytes sent, how many have arrived, and the results. */
struct wire {
    mk_str sent;
    size_t arrived, at, step;
    struct mk_buf body;
    struct wire_lines *events;
};

static void event(struct wire *w, const char *name, mk_str text)
{
    struct mk_buf *line = wire_lines_add(w->events);
    mk_buf_addf(line, "%s%s", name, text.len ? " " : "");
    mk_buf_add(line, text);
}

static void number_event(struct wire *w, const char *name, uint64_t n, const char *behind)
{
    mk_buf_addf(wire_lines_add(w->events), "%s %llu%s", name, (unsigned long long)n, behind);
}

static void refuse(struct wire *w, int status)
{
    number_event(w, "status", (uint64_t)status, " close");
}

static bool receive(struct wire *w)
{
    size_t before = w->arrived;
    w->arrived += mk_min(w->step, w->sent.len - w->arrived);
    return w->arrived > before;
}

static mk_str received(const struct wire *w)
{
    return mk_str_skip(mk_str_first(w->sent, w->arrived), w->at);
}

/* Returns false when nothing more can happen on this connection. */
static bool play_head(struct wire *w, struct mk_request_head *h)
{
    size_t seen = 0;
    int r;
    while ((r = mk_request_head_parse(h, received(w), seen, &limits)) == 0) {
        seen = received(w).len;
        if (!receive(w)) {
            if (seen)
                event(w, "incomplete", MK_STR(""));
            return false;
        }
    }
    if (r < 0)
        refuse(w, -r);
    else
        w->at += (size_t)r;
    assert_true(r < 0 || (size_t)r == h->len);
    return r > 0;
}

static void show_fields(struct wire *w, const struct mk_request_head *h)
{
    for (unsigned i = 0; i < h->fields.n; i++) {
        struct mk_buf *line = wire_lines_add(w->events);
        const struct mk_header_field *f = &h->fields.at[i];
        mk_buf_addf(line, "field %.*s:%s", MK_STR_ARG(f->name), f->value.len ? " " : "");
        mk_buf_add(line, f->value);
    }
}

static void show_request(struct wire *w, const struct mk_request_head *h, const struct mk_framing *f,
                         const struct mk_target *t, mk_str path)
{
    mk_buf_addf(wire_lines_add(w->events), "request %.*s %.*s HTTP/1.%u", MK_STR_ARG(h->method_text),
                MK_STR_ARG(h->target), h->minor);
    bool absolute = t->host.p != NULL;
    event(w, "host", absolute ? t->host : f->host);
    uint32_t port = absolute ? t->port : f->port;
    if (port != MK_PORT_NONE)
        number_event(w, "port", port, "");
    event(w, "path", path);
    if (t->query.p)
        event(w, "query", t->query);
    show_fields(w, h);
    if (f->expect_continue)
        event(w, "continue", MK_STR(""));
}

static bool play_request(struct wire *w, const struct mk_request_head *h, struct mk_framing *f)
{
    struct mk_target t;
    char out[8192];
    unsigned flags;
    int status = mk_framing_parse(h, &(struct mk_authority_cache){0}, f);
    if (!status)
        status = mk_target_parse(h->method, h->target, &t);
    mk_str path = status ? MK_STR("") : t.path;
    if (!status && path.len && path.p[0] == '/')
        status = mk_path_decode(t.path, out, &path, &flags);
    if (status)
        refuse(w, status);
    else
        show_request(w, h, f, &t, path);
    return status == 0;
}

static bool play_length(struct wire *w, uint64_t length)
{
    while (received(w).len < length)
        if (!receive(w))
            return false;
    mk_buf_add(&w->body, mk_str_first(received(w), (size_t)length));
    w->at += (size_t)length;
    return true;
}

/* Decodes the body into w->body. Returns the last result of mk_chunked_decode(). */
static int play_chunks(struct wire *w)
{
    struct mk_chunked c;
    mk_chunked_init(&c, TRAILERS_MAX);
    for (;;) {
        mk_str in = received(w), data;
        int r = mk_chunked_decode(&c, &in, &data);
        w->at = w->arrived - in.len;
        if (r == MK_CHUNKED_DATA)
            mk_buf_add(&w->body, data);
        else if (r == MK_CHUNKED_TRAILERS)
            continue;
        else if (r != MK_CHUNKED_MORE || !receive(w))
            return r;
    }
}

static bool play_body(struct wire *w, const struct mk_framing *f)
{
    mk_buf_clear(&w->body);
    int r = MK_CHUNKED_END;
    if (f->body == MK_BODY_CHUNKED)
        r = play_chunks(w);
    else if (!play_length(w, f->length))
        r = MK_CHUNKED_MORE;
    if (r < 0)
        refuse(w, -r);
    if (r == MK_CHUNKED_MORE)
        event(w, "incomplete", MK_STR(""));
    if (r != MK_CHUNKED_END)
        return false;
    number_event(w, "body", w->body.len, " bytes");
    if (w->body.len)
        event(w, "data", mk_buf_str(&w->body));
    event(w, f->keep_alive ? "keep" : "close", MK_STR(""));
    return f->keep_alive;
}

static void play(const struct wire_case *c, size_t step, struct wire_lines *events)
{
    struct wire w = {.sent = mk_buf_str(&c->bytes), .step = step, .events = events};
    w.body = mk_buf_growing(WIRE_TEXT_MAX);
    struct mk_header_field fields[FIELDS_MAX];
    struct mk_framing f;
    bool more = true;
    while (more) {
        struct mk_request_head h = {.fields = {.at = fields}};
        more = play_head(&w, &h) && play_request(&w, &h, &f) && play_body(&w, &f);
    }
    mk_buf_free(&w.body);
}

static bool must_be_listed(mk_str line)
{
    return mk_str_starts(line, MK_STR("request ")) || mk_str_starts(line, MK_STR("status ")) ||
           mk_str_eq(line, MK_STR("incomplete"));
}

static void check(const struct wire_case *c, size_t step)
{
    struct wire_lines events = {.n = 0};
    size_t next = 0;
    play(c, step, &events);
    for (size_t i = 0; i < events.n; i++) {
        mk_str line = mk_buf_str(&events.at[i]);
        mk_str expected = next < c->expect.n ? mk_buf_str(&c->expect.at[next]) : MK_STR("nothing");
        if (mk_str_eq(line, expected))
            next++;
        else if (must_be_listed(line))
            fail_msg("%s, in pieces of %zu: \"%.*s\" where \"%.*s\" is expected", c->name, step,
                     MK_STR_ARG(line), MK_STR_ARG(expected));
    }
    if (next < c->expect.n)
        fail_msg("%s, in pieces of %zu: no \"%.*s\"", c->name, step,
                 MK_STR_ARG(mk_buf_str(&c->expect.at[next])));
    wire_lines_free(&events);
}

static void check_file(const char *name)
{
    static const size_t steps[] = {SIZE_MAX, 1, 2, 7, 64};
    char *buffer = test_malloc(FILE_MAX);
    struct wire_case c;
    unsigned n = 0;
    for (mk_str file = wire_read_file(name, buffer, FILE_MAX); wire_case_next(&file, &c); n++) {
        for (size_t i = 0; i < MK_LEN(steps); i++)
            check(&c, steps[i]);
        wire_case_free(&c);
    }
    test_free(buffer);
    assert_true(n > 10);
}

static void wire_heads(void **state)
{
    (void)state;
    check_file("heads.txt");
}

static void wire_hosts(void **state)
{
    (void)state;
    check_file("hosts.txt");
}

static void wire_targets(void **state)
{
    (void)state;
    check_file("targets.txt");
}

static void wire_framing(void **state)
{
    (void)state;
    check_file("framing.txt");
}

static void wire_chunked(void **state)
{
    (void)state;
    check_file("chunked.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wire_heads),   cmocka_unit_test(wire_hosts),   cmocka_unit_test(wire_targets),
        cmocka_unit_test(wire_framing), cmocka_unit_test(wire_chunked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
