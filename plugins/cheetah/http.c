/* SPDX-License-Identifier: Apache-2.0 */
#include "http.h"

#include <stdio.h>

#include "http_content.h"

enum { WORD_MAX = 300 };

static const struct cheetah_http_error ok = {0, NULL};

static struct cheetah_http_error error(unsigned status, const char *text)
{
    return (struct cheetah_http_error){status, text};
}

/* ---- The head of a request ---- */

bool cheetah_http_is_request_line(mk_str line)
{
    return mk_str_ends(line, MK_STR(" HTTP/1.1")) || mk_str_ends(line, MK_STR(" HTTP/1.0"));
}

static bool copy_word(char *to, size_t cap, mk_str word)
{
    if (!word.len || word.len >= cap)
        return false;
    for (size_t i = 0; i < word.len; i++)
        if (word.p[i] <= ' ' || word.p[i] > '~')
            return false;
    memcpy(to, word.p, word.len);
    to[word.len] = '\0';
    return true;
}

struct cheetah_http_error cheetah_http_begin(struct cheetah_http *h, mk_str line)
{
    mk_str rest = line, method = mk_str_cut(&rest, ' '), target = mk_str_cut(&rest, ' ');
    cheetah_http_reset(h);
    h->is_active = true;
    h->closes = mk_str_eq(rest, MK_STR("HTTP/1.0"));
    if (!copy_word(h->method, sizeof h->method, method))
        return error(501, "unknown method");
    if (!copy_word(h->target, sizeof h->target, target) || h->target[0] != '/')
        return error(target.len < sizeof h->target ? 400 : 414, "invalid target");
    return ok;
}

static struct cheetah_http_error read_length(struct cheetah_http *h, mk_str value)
{
    uint64_t n;
    if (!mk_num_parse(value, &n) || (h->has_length && n != h->length))
        return error(400, "invalid Content-Length");
    if (n > CHEETAH_HTTP_CONTENT_MAX)
        return error(413, "the content has more than 4095 bytes");
    h->has_length = true;
    h->length = (size_t)n;
    return ok;
}

struct cheetah_http_error cheetah_http_read_line(struct cheetah_http *h, mk_str line)
{
    mk_str value = line, name = mk_str_cut(&value, ':');
    if (!line.len) {
        h->has_head = true;
        return ok;
    }
    if (++h->n_headers > CHEETAH_HTTP_HEADERS_MAX)
        return error(431, "too many headers");
    value = mk_str_trim(value);
    if (!mk_is_token(name) || !value.p || !mk_is_header_value(value))
        return error(400, "invalid header");
    if (mk_str_eq_nocase(name, MK_STR("Content-Length")))
        return read_length(h, value);
    if (mk_str_eq_nocase(name, MK_STR("Transfer-Encoding")))
        return error(501, "the request needs a Content-Length");
    if (mk_str_eq_nocase(name, MK_STR("Expect")))
        return error(417, "the content is sent without waiting");
    if (mk_str_eq_nocase(name, MK_STR("Connection")) && mk_str_eq_nocase(value, MK_STR("close")))
        h->closes = true;
    return ok;
}

/* ---- Commands ---- */

/* Decodes a part of the target. The result is one word of a command, of `max` or smaller bytes. */
static bool append_word(struct mk_buf *out, mk_str part, unsigned char max)
{
    size_t before = out->len;
    for (size_t i = 0; i < part.len; i++) {
        int c = (unsigned char)part.p[i];
        if (c == '%') {
            int high = i + 2 < part.len ? mk_char_hex(part.p[i + 1]) : -1;
            int low = high >= 0 ? mk_char_hex(part.p[i + 2]) : -1;
            if (low < 0)
                return false;
            c = high * 16 + low;
            i += 2;
        }
        if (c <= ' ' || c == 0x7f || c > max)
            return false;
        mk_buf_add_char(out, (char)c);
    }
    return out->len > before && out->len - before < WORD_MAX;
}

static bool append_segment(struct mk_buf *out, mk_str segment)
{
    return append_word(out, segment, '~');
}

static struct cheetah_http_error read_content(mk_str content, unsigned allowed,
                                              struct cheetah_http_content *p)
{
    const char *text = cheetah_http_content_parse(content, allowed, p);
    return text ? error(400, text) : ok;
}

/* For a request without content. */
static struct cheetah_http_error expect_no_content(mk_str content)
{
    return content.len ? error(400, "this request has no content") : ok;
}

static bool is_method(const struct cheetah_http *h, const char *method)
{
    return strcmp(h->method, method) == 0;
}

static struct cheetah_http_error append_add(struct mk_buf *out, const struct cheetah_http_content *p)
{
    if (!p->server.len)
        return error(400, "expected {\"server\": \"HOST:PORT\"}, and `weight`, `backup` or `save`");
    mk_buf_addf(out, " add %.*s", MK_STR_ARG(p->server));
    if (p->given & CHEETAH_HTTP_WEIGHT)
        mk_buf_addf(out, " weight=%llu", (unsigned long long)p->weight);
    if (p->is_backup)
        mk_buf_add(out, MK_STR(" backup"));
    return ok;
}

static struct cheetah_http_error append_change(struct mk_buf *out, mk_str server,
                                               const struct cheetah_http_content *p)
{
    bool drains = mk_str_eq(p->state, MK_STR("drain")), enables = mk_str_eq(p->state, MK_STR("enabled"));
    bool has_weight = p->given & CHEETAH_HTTP_WEIGHT, has_state = p->given & CHEETAH_HTTP_STATE;
    if (has_state == has_weight || (has_state && !drains && !enables) || (p->moves && !drains))
        return error(400, "expected {\"state\": \"drain\"} (and `move`), {\"state\": \"enabled\"} or "
                          "{\"weight\": N}, and `save`");
    mk_buf_addf(out, " %s ", has_weight ? "weight" : drains ? "drain" : "enable");
    if (!append_segment(out, server))
        return error(400, "invalid server");
    if (has_weight)
        mk_buf_addf(out, " %llu", (unsigned long long)p->weight);
    if (p->moves)
        mk_buf_add(out, MK_STR(" move"));
    return ok;
}

static unsigned upstream_members(const struct cheetah_http *h)
{
    if (is_method(h, "POST"))
        return CHEETAH_HTTP_SERVER | CHEETAH_HTTP_WEIGHT | CHEETAH_HTTP_BACKUP | CHEETAH_HTTP_SAVE;
    if (is_method(h, "PATCH"))
        return CHEETAH_HTTP_STATE | CHEETAH_HTTP_WEIGHT | CHEETAH_HTTP_MOVE | CHEETAH_HTTP_SAVE;
    return CHEETAH_HTTP_SAVE;
}

/* /upstreams/NAME/servers and /upstreams/NAME/servers/SERVER */
static struct cheetah_http_error upstream_command(const struct cheetah_http *h, mk_str path, mk_str content,
                                                  struct mk_buf *out)
{
    struct cheetah_http_content p;
    mk_str name = mk_str_cut(&path, '/'), servers = mk_str_cut(&path, '/'), server = path;
    struct cheetah_http_error e = read_content(content, upstream_members(h), &p);
    if (!mk_str_eq(servers, MK_STR("servers")))
        return error(404, "not found");
    if (e.status)
        return e;
    mk_buf_add(out, MK_STR("upstream "));
    if (!append_segment(out, name))
        return error(404, "not found");
    if (is_method(h, "POST") && !server.len) {
        e = append_add(out, &p);
    } else if (is_method(h, "PATCH") && server.len) {
        e = append_change(out, server, &p);
    } else if (is_method(h, "DELETE") && server.len) {
        mk_buf_add(out, MK_STR(" remove "));
        e = append_segment(out, server) ? ok : error(400, "invalid server");
    } else {
        e = error(405, server.len ? "expected PATCH or DELETE" : "expected POST");
    }
    if (p.saves)
        mk_buf_add(out, MK_STR(" --save"));
    return e;
}

static struct cheetah_http_error level_command(const struct cheetah_http *h, mk_str content,
                                               struct mk_buf *out)
{
    struct cheetah_http_content p;
    mk_buf_add(out, MK_STR("loglevel "));
    if (is_method(h, "GET"))
        return expect_no_content(content);
    struct cheetah_http_error e = read_content(content, CHEETAH_HTTP_LEVEL, &p);
    if (!e.status && !p.level.len)
        e = error(400, "expected {\"level\": \"info\"}");
    mk_buf_add(out, p.level);
    return e;
}

/* /reload, /confirm and /rollback */
static struct cheetah_http_error config_command(const struct cheetah_http *h, mk_str name, mk_str content,
                                                struct mk_buf *out)
{
    struct cheetah_http_content p;
    unsigned allowed = mk_str_eq(name, MK_STR("reload"))     ? CHEETAH_HTTP_CONFIRM | CHEETAH_HTTP_TIMEOUT
                       : mk_str_eq(name, MK_STR("rollback")) ? CHEETAH_HTTP_NUMBER | CHEETAH_HTTP_TIMEOUT
                                                             : 0;
    struct cheetah_http_error e = read_content(content, allowed, &p);
    mk_buf_add(out, name);
    if (!is_method(h, "POST"))
        return error(405, "expected POST");
    if (p.given & CHEETAH_HTTP_TIMEOUT)
        mk_buf_addf(out, " --timeout %.*s", MK_STR_ARG(p.timeout));
    if (p.given & CHEETAH_HTTP_CONFIRM)
        mk_buf_addf(out, " --confirm %.*s", MK_STR_ARG(p.confirm));
    if (p.given & CHEETAH_HTTP_NUMBER)
        mk_buf_addf(out, " %llu", (unsigned long long)p.number);
    return e;
}

/* Appends a parameter of the query as an option. */
static bool append_option(struct mk_buf *out, mk_str parameter)
{
    mk_str value = parameter, name = mk_str_cut(&value, '=');
    for (size_t i = 0; i < name.len; i++)
        if (!mk_char_is_alpha(name.p[i]))
            return false;
    mk_buf_addf(out, " --%.*s", MK_STR_ARG(name));
    if (!value.p || !value.len) {
        mk_buf_add(out, value.p ? MK_STR("=") : MK_STR(""));
        return name.len > 0;
    }
    mk_buf_add_char(out, '=');
    return name.len && append_word(out, value, 0xff);
}

/* /top and /requests: the parameters of the query are options of the command, except `format`. */
static struct cheetah_http_error recorded_command(const struct cheetah_http *h, mk_str name, mk_str query,
                                                  mk_str content, struct mk_buf *out,
                                                  enum cheetah_http_type *type)
{
    char buf[2 * CHEETAH_HTTP_TARGET_MAX];
    struct mk_buf options = mk_buf_fixed(buf, sizeof buf);
    bool has_lines = false, is_json = true;
    while (query.len) {
        mk_str parameter = mk_str_cut(&query, '&');
        if (mk_str_eq(parameter, MK_STR("format=text")))
            is_json = false;
        else if (mk_str_eq(parameter, MK_STR("format=lines")))
            has_lines = true;
        else if (!append_option(&options, parameter))
            return error(400,
                         "invalid query: expected NAME=VALUE, with at most 299 bytes of VALUE, and no spaces "
                         "or control characters");
    }
    *type = has_lines ? CHEETAH_HTTP_JSON_LINES : is_json ? CHEETAH_HTTP_JSON : CHEETAH_HTTP_TEXT;
    mk_buf_addf(out, "%s%.*s%s%.*s", is_json ? "json " : "", MK_STR_ARG(name), has_lines ? " --lines" : "",
                MK_STR_ARG(mk_buf_str(&options)));
    return is_method(h, "GET") ? expect_no_content(content) : error(405, "expected GET");
}

/* The commands that only print something. */
static const struct {
    const char *path;
    bool is_json;
} readable[] = {{"status", true},   {"workers", true}, {"connections", true}, {"upstreams", true},
                {"packages", true}, {"routes", true},  {"components", true},  {"metrics", true},
                {"cache", true},    {"hosts", false},  {"plugins", false},    {"configuration", false},
                {"version", false}, {"uptime", false}};

struct cheetah_http_error cheetah_http_command(const struct cheetah_http *h, mk_str content,
                                               struct mk_buf *command, enum cheetah_http_type *type)
{
    mk_str path = mk_str_skip(mk_str_from_c(h->target), 1), query = path, name = mk_str_cut(&query, '?');
    *type = CHEETAH_HTTP_TEXT;
    if (mk_str_eq(name, MK_STR("top")) || mk_str_eq(name, MK_STR("requests")))
        return recorded_command(h, name, query, content, command, type);
    if (mk_str_starts(path, MK_STR("upstreams/")))
        return upstream_command(h, mk_str_skip(path, sizeof "upstreams/" - 1), content, command);
    if (mk_str_eq(path, MK_STR("reload")) || mk_str_eq(path, MK_STR("confirm")) ||
        mk_str_eq(path, MK_STR("rollback")))
        return config_command(h, path, content, command);
    if (mk_str_eq(path, MK_STR("loglevel")) && (is_method(h, "PUT") || is_method(h, "GET")))
        return level_command(h, content, command);
    if (mk_str_eq(path, MK_STR("cache")) && is_method(h, "DELETE")) {
        mk_buf_add(command, MK_STR("cache clear"));
        return expect_no_content(content);
    }
    for (size_t i = 0; i < MK_LEN(readable); i++) {
        if (!mk_str_eq(path, mk_str_from_c(readable[i].path)))
            continue;
        bool is_json = readable[i].is_json;
        *type = is_json ? CHEETAH_HTTP_JSON : CHEETAH_HTTP_TEXT;
        mk_buf_addf(command, "%s%s", is_json ? "json " : "", readable[i].path);
        return is_method(h, "GET") ? expect_no_content(content) : error(405, "expected GET");
    }
    return error(404, "not found");
}

/* ---- The response ---- */

static const char *reason_of(unsigned status)
{
    switch (status) {
    case 200:
        return "OK";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 409:
        return "Conflict";
    case 503:
        return "Service Unavailable";
    default:
        return "Error";
    }
}

void cheetah_http_write_head(struct cheetah_http *h, struct mk_buf *out, unsigned status,
                             enum cheetah_http_type type, int64_t length)
{
    static const char *const types[] = {"text/plain; charset=utf-8", "application/json",
                                        "application/x-ndjson"};
    mk_buf_addf(out, "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nCache-Control: no-store\r\n", status,
                reason_of(status), types[type]);
    if (length >= 0)
        mk_buf_addf(out, "Content-Length: %lld\r\n", (long long)length);
    else
        mk_buf_add(out, MK_STR("Transfer-Encoding: chunked\r\n"));
    if (h->closes)
        mk_buf_add(out, MK_STR("Connection: close\r\n"));
    mk_buf_add(out, MK_STR("\r\n"));
    h->is_head_sent = true;
    h->is_chunked = length < 0;
}

void cheetah_http_write_chunk(struct mk_buf *out, mk_str data)
{
    mk_buf_addf(out, "%zx\r\n", data.len);
    mk_buf_add(out, data);
    mk_buf_add(out, MK_STR("\r\n"));
}

void cheetah_http_write_text(const struct cheetah_http *h, struct mk_buf *out, const char *key, mk_str text)
{
    struct mk_json_writer w = mk_json_writer_to(out);
    mk_str notes = mk_buf_str(&h->notes);
    mk_json_begin_object(&w);
    mk_json_string(mk_json_key(&w, key), text);
    if (notes.len) {
        mk_json_begin_array(mk_json_key(&w, "remarks"));
        while (notes.len)
            mk_json_string(&w, mk_str_cut(&notes, '\n'));
        mk_json_end_array(&w);
    }
    mk_json_end_object(&w);
    mk_buf_add_char(out, '\n');
}

void cheetah_http_reset(struct cheetah_http *h)
{
    mk_buf_free(&h->content);
    mk_buf_free(&h->notes);
    *h = (struct cheetah_http){.content = mk_buf_growing(4 << 20), .notes = mk_buf_growing(64 << 10)};
}
