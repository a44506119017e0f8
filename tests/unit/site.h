/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual host with its own folder, and requests to it without a socket. Independent of cmocka: fuzz
 * targets also use it. */
#ifndef MK_UNIT_SITE_H
#define MK_UNIT_SITE_H

#include "http/framing.h"
#include "unit/folder.h"
#include "unit/harness.h"
#include "web/dispatch.h"
#include "web/request_target.h"
#include "web/static.h"

enum { SITE_FIELDS = 64, SITE_LOGGED = 1024, SITE_CONTENT = 1 << 20 };

struct site {
    struct folder folder;
    struct mk_arena arena;
    struct mk_arena_cache blocks;
    struct mk_mime mime;
    struct mk_vhost host;
    struct mk_vhosts hosts;
    struct mk_web_ctx web;
    struct mk_addr peer;
    uint64_t now_ms; /* arrival time of the next request */
    int64_t now;
    struct mk_log log;
    char logged[SITE_LOGGED]; /* the last log message, NUL-terminated */
    unsigned n_logged;
};

static const struct mk_file_cache_limits site_limits = {
    .files = 64, .memory = 64 * 1024, .small = 1024, .recheck_ms = 1000};

static const mk_str site_index[] = {MK_STR_INIT("index.html"), MK_STR_INIT("index.htm")};

static const struct mk_route site_route = {.pattern = {.text = MK_STR_INIT("/*"), .kind = MK_PATTERN_ALL},
                                           .handler = &mk_static,
                                           .written = MK_STR_INIT("static")};

static inline void site_log(struct mk_log *log, enum mk_log_level level, mk_str text)
{
    struct site *s = log->data;
    (void)level;
    snprintf(s->logged, sizeof s->logged, "%.*s", MK_STR_ARG(text));
    s->n_logged++;
}

/* Serves the folder with the static handler, at a fixed time. Tests may change all settings before the first
 * request. */
static inline void site_init_with(struct site *s, const struct mk_file_cache_limits *limits)
{
    mk_str taken;
    const struct mk_vhost *holder;
    memset(s, 0, sizeof *s);
    folder_init(&s->folder);
    mk_arena_init(&s->arena, NULL);
    mk_arena_cache_init(&s->blocks, 8);
    mk_mime_init(&s->mime, &s->arena, MK_STR("application/octet-stream"));
    s->host = (struct mk_vhost){.root = {.fd = s->folder.fd, .path = s->folder.path},
                                .index = site_index,
                                .n_index = MK_LEN(site_index),
                                .routes = &site_route,
                                .n_routes = 1,
                                .mime = &s->mime,
                                .ranges = true,
                                .precompressed = true};
    mk_vhosts_init(&s->hosts, &s->arena);
    MK_ASSERT(mk_vhosts_add(&s->hosts, &s->host, &taken, &holder) == 0);
    s->log = (struct mk_log){.level = MK_LOG_DEBUG, .write = site_log, .data = s};
    static const struct mk_request_limits unlimited = {.content_max = UINT64_MAX};
    s->web =
        (struct mk_web_ctx){.hosts = &s->hosts, .log = &s->log, .now_ms = &s->now_ms, .limits = &unlimited};
    MK_ASSERT(mk_file_cache_init(&s->web.files, limits) == 0);
    s->peer = (struct mk_addr){.is_unix = 1};
    s->now_ms = 1000000;
    s->now = 1800000000;
}

static inline void site_init(struct site *s)
{
    site_init_with(s, &site_limits);
}

static inline void site_fini(struct site *s)
{
    mk_file_cache_fini(&s->web.files);
    mk_arena_cache_fini(&s->blocks);
    mk_arena_fini(&s->arena);
    folder_fini(&s->folder);
}

HARNESS_FIXTURE(site, struct site);

/* Adds a file with an old modification time, so that no test depends on the current time. */
static inline void site_add(const struct site *s, const char *name, mk_str text)
{
    folder_add(&s->folder, name, text);
    folder_set_time(&s->folder, name, 1700000000);
}

/* Creates a request from the bytes of its head, as a connection would. Returns NULL if out of memory. */
static inline struct mk_exchange *site_request(struct site *s, const char *head_text)
{
    static const struct mk_request_head_limits limits = {
        .head_max = 65536, .target_max = 32768, .fields_max = SITE_FIELDS};
    struct mk_exchange *x = mk_exchange_new(&s->web, &s->blocks, s->now_ms, s->now);
    mk_str text = x ? mk_arena_copy(&x->arena, mk_str_from_c(head_text)) : MK_STR_NULL;
    struct mk_header_field *fields = x ? mk_arena_alloc(&x->arena, SITE_FIELDS * sizeof *fields) : NULL;
    if (!text.p || !fields) {
        if (x)
            mk_exchange_free(x);
        return NULL;
    }
    struct mk_request_head head = {.fields = {.at = fields}};
    struct mk_framing framing = {.host = {NULL, 0}};
    MK_ASSERT(mk_request_head_parse(&head, text, 0, &limits) == (int)text.len);
    struct mk_request *r = &x->request;
    r->version = head.minor ? 11 : 10;
    r->received.method = head.method;
    r->method_text = head.method_text;
    r->fields = head.fields;
    r->peer = &s->peer;
    (void)!mk_framing_parse(&head, &(struct mk_authority_cache){0}, &framing);
    int status = mk_request_target_init(r, head.target, framing.host);
    if (status)
        mk_dispatch_error(x, (unsigned)status);
    return x;
}

/* Creates a GET request for the target, with extra header fields ("Name: value\r\n..."). */
static inline struct mk_exchange *site_get(struct site *s, const char *target, const char *fields)
{
    char head[4096];
    snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: a\r\n%s\r\n", target, fields);
    return site_request(s, head);
}

/* Creates a GET request and runs its handler. */
static inline struct mk_exchange *site_run_get(struct site *s, const char *target, const char *fields)
{
    struct mk_exchange *x = site_get(s, target, fields);
    MK_ASSERT(x && mk_dispatch_run(x));
    return x;
}

/* Returns the response body; if a read fails or would wait, only the part before it. NUL-terminated, in the
 * request's arena. */
static inline mk_str site_content(struct mk_exchange *x)
{
    struct mk_buf out = mk_buf_growing(SITE_CONTENT);
    ssize_t n;
    do {
        char piece[1000];
        n = mk_response_body_read(&x->response.content, piece, sizeof piece);
        if (n > 0)
            mk_buf_add(&out, mk_str_of(piece, (size_t)n));
    } while (n > 0);
    mk_str text = mk_arena_copy(&x->arena, mk_buf_str(&out));
    mk_buf_free(&out);
    return text;
}

static inline mk_str site_field(const struct mk_exchange *x, const char *name)
{
    return mk_response_header(&x->response, mk_str_from_c(name));
}

#endif
