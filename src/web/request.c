/* SPDX-License-Identifier: Apache-2.0 */
#include "http/header_role.h"
#include "web/request_type.h"

#include <monkey/trace.h>
#include <stdio.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "web/exchange.h"
#include "web/trailers.h"
#include "web/vhost.h"

enum { MESSAGE_MAX = 1024, METHOD_SHOWN = 16, TARGET_SHOWN = 256, JSON_MAX = 2816 };

enum mk_method mk_request_method(const struct mk_request *r)
{
    return r->target->method;
}

mk_str mk_request_method_text(const struct mk_request *r)
{
    return r->method_text;
}

mk_str mk_request_method_name(const struct mk_request *r)
{
    return r->target->method == MK_METHOD_GET ? MK_STR("GET") : r->method_text;
}

unsigned mk_request_version(const struct mk_request *r)
{
    return r->version;
}

mk_str mk_request_target(const struct mk_request *r)
{
    return r->target_text;
}

mk_str mk_request_path(const struct mk_request *r)
{
    return r->target->path;
}

mk_str mk_request_query(const struct mk_request *r)
{
    return r->target->target.query;
}

mk_str mk_request_host(const struct mk_request *r)
{
    return mk_vhost_trim_dot(r->host);
}

mk_str mk_request_tunnel(const struct mk_request *r)
{
    return r->tunnel;
}

mk_str mk_request_upgrade(const struct mk_request *r)
{
    return r->tunnel.p ? r->tunnel : r->upgrade;
}

/* ---- Fields ---- */

/* Does the header describe the body or how it is transferred (RFC 9110, section 15.4)? */
static bool is_representation_header(mk_str name)
{
    static const mk_str others[] = {MK_STR_INIT("Digest"),        MK_STR_INIT("Expect"),
                                    MK_STR_INIT("Last-Modified"), MK_STR_INIT("Repr-Digest"),
                                    MK_STR_INIT("Trailer"),       MK_STR_INIT("Transfer-Encoding")};
    const mk_str content = MK_STR("Content-");
    if (mk_str_eq_nocase(mk_str_first(name, content.len), content))
        return true;
    for (size_t i = 0; i < MK_LEN(others); i++)
        if (mk_str_eq_nocase(name, others[i]))
            return true;
    return false;
}

/* Returns the i-th header visible to handlers, or NULL. If a rewrite dropped the body, the headers that
 * describe it are hidden. */
static const struct mk_header_field *visible_header_at(const struct mk_request *r, size_t i)
{
    const struct mk_header_field *f = r->fields.at, *end = f + r->fields.n;
    if (MK_LIKELY(!mk_request_body_was_dropped(r)))
        return i < r->fields.n ? f + i : NULL;
    while (f < end && (is_representation_header(f->name) || i-- > 0))
        f++;
    return f < end ? f : NULL;
}

mk_str mk_request_header(const struct mk_request *r, mk_str name)
{
    bool is_hidden = mk_request_body_was_dropped(r) && is_representation_header(name);
    return is_hidden ? MK_STR_NULL : mk_headers_find(&r->fields, name);
}

bool mk_request_header_at(const struct mk_request *r, size_t i, mk_str *name, mk_str *value)
{
    const struct mk_header_field *f = visible_header_at(r, i);
    if (!f)
        return false;
    *name = f->name;
    *value = f->value;
    return true;
}

enum mk_header_role mk_request_header_role(const struct mk_request *r, size_t i)
{
    const struct mk_header_field *f = visible_header_at(r, i);
    if (f && mk_request_header_is_set(r, (size_t)(f - r->fields.at)))
        return MK_ROLE_SERVER;
    return f ? mk_header_role_of_id((enum mk_header_id)f->id, f->name) : MK_ROLE_NONE;
}

bool mk_request_trailer_at(const struct mk_request *r, size_t i, mk_str *name, mk_str *value)
{
    if (mk_request_body_was_dropped(r) || !r->trailers || i >= r->trailers->n)
        return false;
    *name = r->trailers->at[i].name;
    *value = r->trailers->at[i].value;
    return true;
}

bool mk_request_accepts_trailers(const struct mk_request *r)
{
    return r->version > 10 && mk_headers_has_token(&r->fields, MK_HEADER_TE, MK_STR("trailers"));
}

/* ---- Addresses ---- */

mk_str mk_request_client_text(struct mk_request *r)
{
    char buf[MK_SOCKADDR_TEXT_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_addr_format(r->peer, &text);
    return mk_arena_copy(r->arena, mk_buf_str(&text));
}

const struct mk_addr *mk_request_client_addr(const struct mk_request *r)
{
    return r->peer;
}

int mk_request_set_client_addr(struct mk_request *r, const struct mk_addr *peer)
{
    struct mk_addr *own =
        mk_arena_alloc(r->arena, sizeof *own); /* the old address belongs to the connection */
    if (!own)
        return -ENOMEM;
    *own = *peer;
    r->peer = own;
    return 0;
}

int mk_request_local_addr(const struct mk_request *r, struct mk_addr *out)
{
    return r->ops && r->ops->local ? r->ops->local(r->ops_ctx, out) : -ENOTCONN;
}

mk_str mk_request_scheme(const struct mk_request *r)
{
    return mk_request_is_secure(r) ? MK_STR("https") : MK_STR("http");
}

void mk_request_set_secure(struct mk_request *r, bool is_secure)
{
    r->is_told = true;
    r->forwarded_is_secure = is_secure;
}

bool mk_request_has_encoded_slash(const struct mk_request *r)
{
    return r->target->path_flags & MK_PATH_ENCODED_SLASH;
}

/* Does the requested host match only a pattern, and no literal name, of the virtual host? A pattern may stand
 * for many hosts, and each subdomain may have a different owner. */
static bool host_matches_only_pattern(const struct mk_request *r)
{
    return r->host.p && mk_vhost_has_name_pattern(r->site) && !mk_vhost_has_name(r->site, r->host);
}

/* Returns "NAME ID", because NAME alone may be a different host on another listener. */
static mk_str unique_vhost_name(const struct mk_request *r)
{
    mk_str name = r->host, id = r->site->id;
    if (name.len > 1 && mk_str_ends(name, MK_STR(".")))
        name.len--;
    char *text = mk_arena_alloc(r->arena, name.len + 1 + id.len);
    if (!text)
        return (mk_str){NULL, 0};
    for (size_t i = 0; i < name.len; i++)
        text[i] = mk_char_lower(name.p[i]);
    text[name.len] = ' ';
    memcpy(text + name.len + 1, id.p, id.len);
    return mk_str_of(text, name.len + 1 + id.len);
}

mk_str mk_request_vhost_name(struct mk_request *r)
{
    if (r->forwarded_vhost_name.p || !r->site)
        return r->forwarded_vhost_name.p ? r->forwarded_vhost_name : MK_STR("");
    if (!host_matches_only_pattern(r))
        return r->site->id.p ? r->site->id : MK_STR("");
    return unique_vhost_name(r);
}

int mk_request_set_vhost_name(struct mk_request *r, mk_str name)
{
    mk_str copy = mk_arena_copy(r->arena, name);
    if (copy.p)
        r->forwarded_vhost_name = copy;
    return copy.p ? 0 : -ENOMEM;
}

const struct mk_vhost *mk_request_vhost(const struct mk_request *r)
{
    return r->site;
}

mk_str mk_request_route(const struct mk_request *r)
{
    return r->route ? r->route->pattern.text : (mk_str){NULL, 0};
}

const struct mk_handler *mk_request_handler(const struct mk_request *r)
{
    return r->route ? r->route->handler : NULL;
}

struct mk_worker *mk_request_worker(const struct mk_request *r)
{
    return r->web->worker;
}

int64_t mk_request_time(const struct mk_request *r)
{
    return r->now;
}

void mk_request_cancel_on_disconnect(struct mk_request *r)
{
    mk_exchange_of(r)->follows_client = true;
}

void mk_request_resume(struct mk_request *r)
{
    if (r->ops)
        r->ops->resume(r->ops_ctx);
}

void *mk_request_alloc(struct mk_request *r, size_t size)
{
    return mk_arena_alloc(r->arena, size);
}

int mk_request_add_cleanup(struct mk_request *r, void (*fn)(void *data), void *data)
{
    return mk_arena_add_cleanup(r->arena, fn, data) ? 0 : -ENOMEM;
}

void mk_request_set_data(struct mk_request *r, void *data)
{
    r->data = data;
}

void *mk_request_data(const struct mk_request *r)
{
    return r->data;
}

/* ---- Data attached by plugins ---- */

struct mk_request_attachment {
    struct mk_request_attachment *next;
    const void *key;
    void *data;
};

int mk_request_attach(struct mk_request *r, const void *key, void *data, void (*fn)(void *data))
{
    struct mk_request_attachment *a =
        r->arena ? mk_arena_alloc(r->arena, sizeof *a) : NULL; /* a copy for the log has no arena */
    if (!a || (fn && !mk_arena_add_cleanup(r->arena, fn, data))) {
        if (fn)
            fn(data);
        return -ENOMEM;
    }
    *a = (struct mk_request_attachment){.next = r->attached, .key = key, .data = data};
    r->attached = a;
    return 0;
}

void *mk_request_attached(const struct mk_request *r, const void *key)
{
    const struct mk_request_attachment *a = r->attached;
    while (a && a->key != key)
        a = a->next;
    return a ? a->data : NULL;
}

/* Most requests have no user: the name is stored as an attachment, and only when set. */
static const char user_key;

int mk_request_set_user(struct mk_request *r, mk_str user)
{
    mk_str *own = mk_arena_alloc(r->arena, sizeof *own);
    mk_str text = mk_arena_copy(r->arena, user);
    if (!own || !text.p)
        return -ENOMEM;
    *own = text;
    return mk_request_attach(r, &user_key, own, NULL);
}

mk_str mk_request_user(const struct mk_request *r)
{
    const mk_str *user = mk_request_attached(r, &user_key);
    return user ? *user : (mk_str){NULL, 0};
}

void mk_request_set_reason(struct mk_request *r, const char *reason)
{
    struct mk_request_extras *extras = mk_request_get_extras(r);
    if (extras)
        extras->reason = reason;
}

/* ---- ID and trace ---- */

bool mk_request_has_id(const struct mk_request *r)
{
    return mk_request_known_id(r).p;
}

const struct mk_trace *mk_request_trace(const struct mk_request *r)
{
    if (r->extras && r->extras->trace)
        return r->extras->trace;
    return MK_UNLIKELY(r->site && r->site->tracing)
               ? r->site->tracing->start((struct mk_request *)(uintptr_t)r)
               : NULL;
}

/* ---- The log ---- */

/* In JSON, the details of the request are members, which precede the fields of the message. */
static void log_json(const struct mk_request *r, struct mk_log *log, enum mk_log_level level, mk_str message,
                     mk_str peer)
{
    const struct mk_log_fields *given = log->fields;
    char buf[JSON_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    struct mk_json_writer w = mk_json_writer_to(&text);
    mk_json_string(mk_json_key(&w, "client"), peer);
    if (r->method_text.p) {
        mk_json_string(mk_json_key(&w, "method"), mk_str_first(r->method_text, METHOD_SHOWN));
        mk_json_string(mk_json_key(&w, "target"), mk_str_first(r->target_text, TARGET_SHOWN));
    }
    if (mk_request_has_id(r))
        mk_json_string(mk_json_key(&w, "request_id"), mk_request_known_id(r));
    if (given && given->json.len) {
        mk_buf_add_char(&text, ',');
        mk_buf_add(&text, given->json);
    }
    struct mk_log_fields all = {.json = mk_buf_str(&text)};
    mk_log_with_fields(log, level, message, text.failed ? given : &all);
}

/* Long messages are truncated, and not the ID that follows them. */
static void log_text(const struct mk_request *r, struct mk_log *log, enum mk_log_level level, mk_str message,
                     mk_str peer)
{
    mk_str method = mk_str_first(r->method_text, METHOD_SHOWN);
    mk_str target = mk_str_first(r->target_text, TARGET_SHOWN), known = mk_request_known_id(r);
    size_t around = sizeof "  from :  (request )" + method.len + target.len + peer.len + known.len;
    bool has_id = known.p;
    if (has_id)
        message = mk_str_first(message, MESSAGE_MAX - around);
    const char *before_id = has_id ? " (request " : "", *id = has_id ? known.p : "", *end = has_id ? ")" : "";
    if (!method.p) /* the request line was invalid */
        mk_log(log, level, "request from %.*s: %.*s%s%s%s", MK_STR_ARG(peer), MK_STR_ARG(message), before_id,
               id, end);
    else
        mk_log(log, level, "%.*s %.*s from %.*s: %.*s%s%s%s", MK_STR_ARG(method), MK_STR_ARG(target),
               MK_STR_ARG(peer), MK_STR_ARG(message), before_id, id, end);
}

void mk_request_write_log(const struct mk_request *r, struct mk_log *log, enum mk_log_level level,
                          mk_str message)
{
    char buf[MK_SOCKADDR_TEXT_MAX];
    struct mk_buf peer = mk_buf_fixed(buf, sizeof buf);
    if (r->peer)
        mk_addr_format(r->peer, &peer);
    if (log && log->is_json)
        log_json(r, log, level, mk_str_first(message, log->message_len), mk_buf_str(&peer));
    else
        log_text(r, log, level, message, mk_buf_str(&peer));
}

static bool is_logged(const struct mk_request *r, enum mk_log_level level)
{
    return (r->site && r->site->hooks.log.n) || (r->web->log && level <= r->web->log->level);
}

/* Logs a message that begins with `message_len` bytes of plain text, followed by fields. Hooks receive all of
 * it, and JSON contains the fields as members instead. */
static void log_message(struct mk_request *r, enum mk_log_level level, struct mk_buf *text,
                        size_t message_len)
{
    const struct mk_hook_list none = {0}, *hooks = r->site ? &r->site->hooks.log : &none;
    mk_str message = mk_buf_str(text);
    mk_log_sanitize(text->p, text->len);
    if (r->web->log)
        r->web->log->message_len = message_len;
    for (size_t i = 0; i < hooks->n; i++)
        if (hooks->at[i].plugin->on_log(r, level, message, hooks->at[i].data))
            return;
    mk_request_write_log(r, r->web->log, level, message);
}

void mk_request_log(struct mk_request *r, enum mk_log_level level, const char *fmt, ...)
{
    char buf[MESSAGE_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    va_list args;
    if (!is_logged(r, level))
        return;
    va_start(args, fmt);
    int len = vsnprintf(buf, sizeof buf, fmt, args);
    va_end(args);
    if (len < 0)
        return;
    text.len = mk_min((size_t)len, sizeof buf - 1);
    log_message(r, level, &text, text.len);
}

void mk_request_log_fields(struct mk_request *r, enum mk_log_level level, mk_str message,
                           const struct mk_log_fields *fields)
{
    struct mk_log *log = r->web->log;
    char buf[MESSAGE_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf - 1);
    if (!is_logged(r, level))
        return;
    mk_buf_add(&text, mk_str_first(message, text.cap));
    size_t message_len = text.len;
    mk_buf_add(&text, mk_str_first(fields->text, text.cap - text.len));
    buf[text.len] = '\0'; /* mk_log_sanitize() reads the byte after the text */
    if (log)
        log->fields = fields;
    log_message(r, level, &text, message_len);
    if (log)
        log->fields = NULL;
}

struct request_log_copy {
    struct mk_request request;
    struct mk_addr peer;
    struct mk_request_extras extras;
    char text[METHOD_SHOWN + TARGET_SHOWN];
    char id[MK_REQUEST_ID_MAX + 1];
};

struct mk_request *mk_request_log_copy(const struct mk_request *r)
{
    struct request_log_copy *m = mk_mem_zalloc(1, sizeof *m);
    if (!m)
        return NULL;
    struct mk_buf text = mk_buf_fixed(m->text, sizeof m->text);
    mk_str method = mk_str_first(r->method_text, METHOD_SHOWN);
    mk_buf_add(&text, method);
    mk_buf_add(&text, mk_str_first(r->target_text, TARGET_SHOWN));
    m->peer = *r->peer;
    m->request = (struct mk_request){.web = r->web,
                                     .site = r->site,
                                     .method_text = mk_str_of(m->text, method.len),
                                     .target_text = mk_str_skip(mk_buf_str(&text), method.len),
                                     .peer = &m->peer};
    mk_str id = mk_request_known_id(r);
    if (id.p) {
        memcpy(m->id, id.p, id.len);
        m->extras.id = mk_str_of(m->id, id.len);
        m->request.extras = &m->extras;
    }
    return &m->request;
}

void mk_request_log_copy_free(struct mk_request *request_log_copy)
{
    mk_mem_free(request_log_copy); /* the request is the first member of its struct */
}

void mk_request_explain(struct mk_request *r, const char *what, const char *fmt, ...)
{
    struct mk_explain_sink *e = r->web->explanation;
    char buf[1024];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    va_list args;
    if (!e)
        return;
    va_start(args, fmt);
    mk_buf_addv(&text, fmt, args);
    va_end(args);
    e->say(e, what, mk_buf_str(&text));
}
