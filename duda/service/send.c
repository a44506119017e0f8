/* SPDX-License-Identifier: Apache-2.0 */
/* Redirects, preconditions, server-sent events and early hints. */
#include <errno.h>
#include <monkey/sized.h>
#include <monkey/sse.h>

#include "service/response.h"
#include "service/result.h"
#include "service/sse_streams.h"
#include "service/suspend.h"

enum { TAG_MAX = 128, EVENT_MAX = 16 << 20 };

/* Percent-encodes characters that are invalid in URLs (RFC 3986, section 2). Browsers drop a tab, so
 * `/<TAB>/host` would redirect to another host. */
static mk_str escape_url(struct duda_ctx *d, mk_str url)
{
    static const char digits[] = "0123456789ABCDEF", never[] = "\"<>\\^`{|}";
    char *encoded = duda_alloc(d, 3 * url.len + 1);
    size_t n = 0;
    if (!encoded)
        return MK_STR_NULL;
    for (size_t i = 0; i < url.len; i++) {
        unsigned char c = (unsigned char)url.p[i];
        bool is_fine = c > ' ' && c < 0x7f && !strchr(never, c);
        encoded[n++] = is_fine ? url.p[i] : '%';
        if (!is_fine) {
            encoded[n++] = digits[c >> 4];
            encoded[n++] = digits[c & 15];
        }
    }
    return mk_str_of(encoded, n);
}

int duda_redirect(struct duda_ctx *d, unsigned status, mk_str url)
{
    if (status < 300 || status > 399 || status == 304)
        return -EINVAL;
    if (!url.p)
        return duda_result_has_reason(d, -EINVAL) /* of duda_url_for() */
                   ? -EINVAL
                   : duda_reason(d, -EINVAL, "the URL of a redirect is absent");
    mk_str escaped = escape_url(d, url);
    int e = escaped.p ? duda_header_set(d, "Location", escaped) : -ENOMEM;
    return e ? e : (int)status;
}

/* Returns whether the path leads to this host. Browsers treat a backslash as a slash, and drop control
 * characters. */
static bool is_local_path(mk_str path)
{
    if (!mk_str_starts(path, MK_STR("/")) || (path.len > 1 && (path.p[1] == '/' || path.p[1] == '\\')))
        return false;
    for (size_t i = 0; i < path.len; i++)
        if ((unsigned char)path.p[i] < ' ' || path.p[i] == 0x7f)
            return false;
    return true;
}

int duda_redirect_local(struct duda_ctx *d, unsigned status, mk_str path)
{
    return is_local_path(path) ? duda_redirect(d, status, path) : 400;
}

/* ---- Preconditions ---- */

/* The characters of an entity tag (RFC 9110, section 8.8.3). */
static bool is_etag_text(mk_str etag)
{
    for (size_t i = 0; i < etag.len; i++)
        if ((unsigned char)etag.p[i] <= ' ' || etag.p[i] == '"' || etag.p[i] == 0x7f)
            return false;
    return true;
}

int duda_check_preconditions(struct duda_ctx *d, mk_str etag, int64_t modified)
{
    char tag_buf[TAG_MAX + 2], date[MK_DATE_LEN];
    struct mk_buf tag = mk_buf_fixed(tag_buf, sizeof tag_buf);
    int e = d->request ? 0 : -EALREADY;
    if (!e && etag.p) {
        mk_buf_addf(&tag, "\"%.*s\"", MK_STR_ARG(etag));
        e = tag.failed || !is_etag_text(etag) ? -EINVAL : duda_header_set(d, "ETag", mk_buf_str(&tag));
    }
    if (!e && modified) {
        mk_date_write(date, modified);
        e = duda_header_set(d, "Last-Modified", mk_str_of(date, sizeof date));
    }
    mk_str quoted = tag.len ? mk_buf_str(&tag) : MK_STR_NULL;
    return e ? e : (int)mk_request_check_preconditions(d->request, quoted, modified);
}

int duda_make_conditional(struct duda_ctx *d, unsigned flags)
{
    if (duda_head_is_final(d))
        return -EALREADY;
    d->conditional = (uint8_t)flags;
    return 0;
}

duda_verdict duda_auto_etag(struct duda_ctx *d)
{
    d->conditional |= MK_CONDITIONAL_ETAG;
    return DUDA_NEXT;
}

/* ---- Server-sent events ---- */

static int begin_sse_stream(struct duda_ctx *d)
{
    int e = duda_head_is_final(d) ? -EALREADY : mk_response_begin_sse(d->response);
    if (!e)
        e = duda_deadline(d, MK_FOREVER);
    if (e)
        return e;
    duda_sse_streams_add(d);
    return 0;
}

mk_str duda_sse_last_id(struct duda_ctx *d)
{
    return duda_header(d, "Last-Event-ID");
}

int duda_sse_send_sized(struct duda_ctx *d, const struct mk_sse_event *event, size_t event_size)
{
    static const struct mk_sse_event comment;
    struct mk_sse_event full;
    struct duda_scratch_buf text;
    int e = duda_scratch_buf_begin(d, &text, EVENT_MAX);
    event = event ? mk_sized_in(&full, sizeof full, event, event_size) : &comment;
    if (!e)
        e = mk_sse_write(&text.buf, event);
    if (!e && !duda_head_is_final(d))
        e = begin_sse_stream(d);
    if (event->retry_ms)
        d->sse_has_retry = true;
    if (!e)
        e = duda_write(d, mk_buf_str(&text.buf));
    duda_wait_end(&text.wait);
    d->sse_was_active = true;
    return e ? e : duda_flush(d);
}

/* ---- Early hints and error pages ---- */

int duda_early_hints(struct duda_ctx *d, mk_str link)
{
    const struct mk_header line = {MK_STR("Link"), link};
    if (duda_head_is_final(d))
        return -EALREADY;
    int e = mk_response_send_1xx(d->request, d->response, 103, &line, 1);
    return e == -EOPNOTSUPP || e == -EAGAIN ? 0 : e;
}

int duda_html(struct duda_ctx *d, mk_str page)
{
    int e = duda_response_begin_append(d);
    if (!e)
        e = mk_response_add_default(d->response, MK_STR("Content-Type"), MK_STR("text/html; charset=utf-8"));
    return e ? e : duda_write(d, page);
}

mk_str duda_html_escape(struct duda_ctx *d, mk_str text)
{
    if (text.len > SIZE_MAX / 8)
        return MK_STR_NULL;
    char *escaped = duda_alloc(d, 6 * text.len + 1);
    if (!escaped)
        return MK_STR_NULL;
    struct mk_buf out = mk_buf_fixed(escaped, 6 * text.len);
    mk_html_escape(&out, text);
    escaped[out.len] = '\0';
    return mk_buf_str(&out);
}
