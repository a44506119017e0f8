/* SPDX-License-Identifier: Apache-2.0 */
/* Pages and cursors of lists, and links to the adjacent pages. */
#include <duda/pagination.h>
#include <errno.h>
#include <monkey/sized.h>
#include <monkey/text.h>

#include "service/cookies.h"
#include "service/session_config.h"
#include "service/url.h"

enum {
    URL_MAX = 16384,
    LINKS_MAX = 4 * URL_MAX,
    NUMBER_SIZE = 24,
    MAC_SIZE = 16,
    CONTENT_MAX = MAC_SIZE + DUDA_CURSOR_MAX,
    CURSOR_TEXT_MAX = (CONTENT_MAX + 2) / 3 * 4, /* in base64 */
};

/* ---- URLs ---- */

/* Percent-encodes what the server accepts in a request target, although it is invalid in a URL. */
static void add_target(struct mk_buf *out, mk_str raw)
{
    for (size_t i = 0; i < raw.len; i++) {
        unsigned char c = (unsigned char)raw.p[i];
        if (c > ' ' && c < 0x7f && !strchr("\"<>\\^`{|}#", c))
            mk_buf_add_char(out, raw.p[i]);
        else
            mk_buf_addf(out, "%%%02X", c);
    }
}

/* Appends NAME=VALUE, escaped. In a query, `/` needs no escape. */
static void add_query_pair(struct mk_buf *out, mk_str name, mk_str value)
{
    mk_url_escape(out, name);
    mk_buf_add_char(out, '=');
    mk_url_escape(out, value);
}

static void add_separator(struct mk_buf *out, size_t path_len)
{
    mk_buf_add_char(out, out->len == path_len ? '?' : '&');
}

mk_str duda_url_with_query(struct duda_ctx *d, const char *name, mk_str value)
{
    if (!d->request)
        return MK_STR_NULL;
    mk_str rest = mk_request_uri(d->request), path = mk_str_cut(&rest, '?'), key = mk_str_from_c(name);
    struct mk_buf out = mk_buf_growing(URL_MAX);
    bool is_written = !value.p;
    add_target(&out, path);
    size_t path_len = out.len;
    while (rest.p) {
        mk_str pair = mk_str_cut(&rest, '&');
        if (!pair.len || (duda_query_pair_has_name(d, pair, key) && is_written))
            continue;
        add_separator(&out, path_len);
        if (duda_query_pair_has_name(d, pair, key)) {
            add_query_pair(&out, key, value);
            is_written = true;
        } else {
            add_target(&out, pair);
        }
    }
    if (!is_written) {
        add_separator(&out, path_len);
        add_query_pair(&out, key, value);
    }
    mk_str url = out.failed ? MK_STR_NULL : duda_strdup(d, mk_buf_str(&out));
    mk_buf_free(&out);
    return url;
}

/* ---- Links ---- */

static bool is_link_text(mk_str text, const char *never)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.p[i] <= ' ' || (unsigned char)text.p[i] >= 0x7f || strchr(never, text.p[i]))
            return false;
    return text.len > 0;
}

static void append_link(struct mk_buf *out, const char *rel, mk_str url)
{
    if (!url.p)
        out->failed = true;
    mk_buf_addf(out, "%s<%.*s>; rel=\"%s\"", out->len ? ", " : "", MK_STR_ARG(url), rel);
}

int duda_link_add(struct duda_ctx *d, const char *rel, mk_str url)
{
    struct mk_buf line = mk_buf_growing(LINKS_MAX);
    if (!is_link_text(url, "<>\"") || !is_link_text(mk_str_from_c(rel), "\"\\"))
        return -EINVAL;
    append_link(&line, rel, url);
    int e = line.failed ? -ENOMEM : duda_header_add(d, "Link", mk_buf_str(&line));
    mk_buf_free(&line);
    return e;
}

/* ---- Query parameters ---- */

static const struct duda_schema_field page_fields[] = {DUDA_PAGE_FIELDS(struct duda_page_parameters)};
const struct duda_schema duda_page_query =
    DUDA_SCHEMA(struct duda_page_parameters, page_fields, .allow_unknown = true);

static const struct duda_schema_field cursor_fields[] = {
    DUDA_STRING(struct duda_cursor_parameters, cursor, .optional = true)};
const struct duda_schema duda_cursor_query =
    DUDA_SCHEMA(struct duda_cursor_parameters, cursor_fields, .allow_unknown = true);

/* ---- Pages ---- */

static mk_str format_number(char buf[NUMBER_SIZE], int64_t n)
{
    struct mk_buf text = mk_buf_fixed(buf, NUMBER_SIZE);
    mk_buf_add_num(&text, (uint64_t)n);
    return mk_buf_str(&text);
}

/* Reads a number from 1 to `max` from the query. */
static duda_verdict read_number(struct duda_ctx *d, const char *name, int64_t max, int64_t *n)
{
    bool is_valid = duda_query_int_or(d, name, *n, n) && *n >= 1 && *n <= max;
    return is_valid ? 0 : duda_error(d, 400, "`%s` must be an integer from 1 to %lld", name, (long long)max);
}

static int64_t limit(int64_t n, int64_t max)
{
    return n < 1 ? 1 : n > max ? max : n;
}

duda_verdict duda_page_read_sized(struct duda_ctx *d, struct duda_page *page, size_t page_size)
{
    struct duda_page full = {0};
    memcpy(&full, page, page_size < sizeof full ? page_size : sizeof full);
    full.size = limit(full.size, DUDA_PAGE_MAX);
    full.number = 1;
    int e = read_number(d, "page", DUDA_PAGE_MAX, &full.number);
    if (!e && full.size_max > 0)
        e = read_number(d, "per_page", limit(full.size_max, DUDA_PAGE_MAX), &full.size);
    full.offset = (full.number - 1) * full.size;
    if (full.total == 0)
        full.total = -1; /* unknown, unless the handler counts the items */
    mk_sized_out(page, page_size, &full, sizeof full);
    return e;
}

static void append_page_link(struct duda_ctx *d, struct mk_buf *out, const char *rel, int64_t number)
{
    char buf[NUMBER_SIZE];
    append_link(out, rel, duda_url_with_query(d, "page", format_number(buf, number)));
}

int duda_page_links_sized(struct duda_ctx *d, const struct duda_page *page, size_t page_size)
{
    struct duda_page full;
    char buf[NUMBER_SIZE];
    page = mk_sized_in(&full, sizeof full, page, page_size);
    struct mk_buf line = mk_buf_growing(LINKS_MAX);
    int64_t size = limit(page->size, DUDA_PAGE_MAX), number = limit(page->number, DUDA_PAGE_MAX),
            last = page->total > 0 ? (page->total - 1) / size + 1 : page->total == 0;
    if (number > 1) {
        append_page_link(d, &line, "first", 1);
        append_page_link(d, &line, "prev", last && number > last ? last : number - 1);
    }
    if (last ? number < last : page->has_next && number < DUDA_PAGE_MAX)
        append_page_link(d, &line, "next", number + 1);
    if (last)
        append_page_link(d, &line, "last", last);
    int e = line.failed ? -ENOMEM : line.len ? duda_header_add(d, "Link", mk_buf_str(&line)) : 0;
    mk_buf_free(&line);
    if (!e && last)
        e = duda_header_set(d, "X-Total-Count", format_number(buf, page->total));
    return e;
}

/* ---- Cursors ---- */

/* Returns the context that is signed with each cursor, so that a cursor is valid only for its path. No cookie
 * name contains a space, so a cursor is never a valid cookie. */
static mk_str cursor_context(struct duda_ctx *d)
{
    return duda_cookie_crypto_context(d, duda_sprintf(d, "cursor %.*s", MK_STR_ARG(d->path)));
}

/* Changes base64 to its form for URLs (RFC 4648, section 5), without padding. */
static mk_str to_base64url(struct mk_buf *text)
{
    for (size_t i = 0; i < text->len; i++)
        text->p[i] = (char)(text->p[i] == '+' ? '-' : text->p[i] == '/' ? '_' : text->p[i]);
    mk_str all = mk_buf_str(text);
    while (all.len && all.p[all.len - 1] == '=')
        all.len--;
    return all;
}

static bool decode_base64url(struct mk_buf *out, mk_str text)
{
    char buf[CURSOR_TEXT_MAX];
    struct mk_buf plain = mk_buf_fixed(buf, sizeof buf);
    for (size_t i = 0; i < text.len; i++) {
        if (strchr("+/=", text.p[i]))
            return false;
        mk_buf_add_char(&plain, (char)(text.p[i] == '-' ? '+' : text.p[i] == '_' ? '/' : text.p[i]));
    }
    return !plain.failed && mk_base64_decode(out, mk_buf_str(&plain)) && !out->failed;
}

static bool is_signed_by(const struct duda_session_config *v, size_t key, mk_str context, mk_str content)
{
    unsigned char mac[DUDA_COOKIE_CRYPTO_MAC];
    return v->seal->mac(v->keys[key], context, mk_str_skip(content, MAC_SIZE), mac) &&
           mk_consttime_eq(mk_str_of((const char *)mac, MAC_SIZE), mk_str_first(content, MAC_SIZE));
}

mk_str duda_cursor_new(struct duda_ctx *d, mk_str position)
{
    struct duda_session_config *v = d->worker_ctx->session_config;
    unsigned char mac[DUDA_COOKIE_CRYPTO_MAC];
    char content_buf[CONTENT_MAX], text_buf[CURSOR_TEXT_MAX];
    struct mk_buf content = mk_buf_fixed(content_buf, sizeof content_buf),
                  text = mk_buf_fixed(text_buf, sizeof text_buf);
    if (!d->request || position.len > DUDA_CURSOR_MAX || !duda_session_config_load_crypto(v))
        return MK_STR_NULL;
    mk_str context = cursor_context(d);
    if (!context.p || !v->seal->mac(v->keys[0], context, position, mac))
        return MK_STR_NULL;
    mk_buf_add(&content, mk_str_of((const char *)mac, MAC_SIZE));
    mk_buf_add(&content, position);
    mk_base64_encode(&text, mk_buf_str(&content));
    return duda_strdup(d, to_base64url(&text));
}

int duda_cursor_read(struct duda_ctx *d, const char *parameter, mk_str *position)
{
    struct duda_session_config *v = d->worker_ctx->session_config;
    char buf[CONTENT_MAX];
    struct mk_buf content = mk_buf_fixed(buf, sizeof buf);
    mk_str text = duda_query(d, parameter), context;
    *position = MK_STR_NULL;
    if (!text.p)
        return 0;
    if (!duda_session_config_load_crypto(v))
        return -EOPNOTSUPP;
    if (!decode_base64url(&content, text) || content.len < MAC_SIZE)
        return -EBADMSG;
    if (!(context = cursor_context(d)).p)
        return -ENOMEM;
    for (size_t i = 0; i < v->n_keys; i++)
        if (is_signed_by(v, i, context, mk_buf_str(&content))) {
            *position = duda_strdup(d, mk_str_skip(mk_buf_str(&content), MAC_SIZE));
            return position->p ? 0 : -ENOMEM;
        }
    return -EBADMSG;
}
