/* SPDX-License-Identifier: Apache-2.0 */
#include "collector.h"

#include <monkey/str.h>
#include <monkey/text.h>
#include <monkey/version.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REQUEST_MAX = 32 * 1024 * 1024, RETRY_MAX_S = 3600, TIMEOUT_MS = 10000 };

/* ---- Requests ---- */

/* Keeps the beginning of the body. The rest of a long body ends the transfer: the status is known by then. */
static size_t append_reply(char *p, size_t size, size_t n, void *ctx)
{
    struct otlp_collector *c = ctx;
    size_t len = size * n, space = OTLP_REPLY_MAX - c->reply_len;
    c->is_reply_too_long = len > space;
    memcpy(c->reply + c->reply_len, p, len < space ? len : space);
    c->reply_len += len < space ? len : space;
    return c->is_reply_too_long ? 0 : len;
}

static bool append_header(struct otlp_collector *c, const char *line)
{
    struct curl_slist *list = curl_slist_append(c->headers, line);
    if (list)
        c->headers = list;
    return list;
}

/* Splits MONKEY_OTLP_HEADERS, one header per line. */
static bool read_headers(struct otlp_collector *c)
{
    char *text = getenv("MONKEY_OTLP_HEADERS"), *rest = text;
    if (!append_header(c, "Content-Type: application/json") || !append_header(c, "Expect:"))
        return false;
    for (char *line; rest && (line = strsep(&rest, "\n"));)
        if (*line && !append_header(c, line))
            return false;
    return true;
}

static void set_options(struct otlp_collector *c)
{
    const char *authority = getenv("OTEL_EXPORTER_OTLP_CERTIFICATE"),
               *timeout = getenv("OTEL_EXPORTER_OTLP_TIMEOUT");
    long ms = timeout ? strtol(timeout, NULL, 10) : TIMEOUT_MS;
    CURL *h = c->curl;
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_URL, c->url);
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, c->error);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_USERAGENT, "Monkey/" MONKEY_VERSION " OTLP");
    curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, ms);
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, ms);
    curl_easy_setopt(h, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, c->headers);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, append_reply);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(h, CURLOPT_POST, 1L);
    if (authority) {
        curl_easy_setopt(h, CURLOPT_CAINFO, authority);
        curl_easy_setopt(h, CURLOPT_CAPATH, NULL);
    }
}

bool otlp_collector_open(struct otlp_collector *c)
{
    *c = (struct otlp_collector){.body = mk_buf_growing(REQUEST_MAX)};
    c->url = getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    if (!c->url || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return false;
    c->multi = curl_multi_init();
    c->curl = curl_easy_init();
    if (!c->multi || !c->curl || !read_headers(c))
        return false;
    set_options(c);
    return true;
}

void otlp_collector_close(struct otlp_collector *c)
{
    if (c->is_sending)
        curl_multi_remove_handle(c->multi, c->curl);
    curl_easy_cleanup(c->curl);
    curl_multi_cleanup(c->multi);
    curl_slist_free_all(c->headers);
    mk_buf_free(&c->body);
    curl_global_cleanup();
}

bool otlp_collector_send(struct otlp_collector *c)
{
    c->reply_len = 0;
    c->is_reply_too_long = false;
    c->error[0] = '\0';
    if (c->body.failed)
        return false;
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, c->body.p);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body.len);
    c->is_sending = curl_multi_add_handle(c->multi, c->curl) == CURLM_OK;
    return c->is_sending;
}

/* ---- Responses ---- */

/* Parses a number of seconds or a date. */
static uint64_t read_retry_after(CURL *curl)
{
    struct curl_header *h;
    uint64_t seconds = 0;
    int64_t now = time(NULL), date = 0;
    if (curl_easy_header(curl, "Retry-After", 0, CURLH_HEADER, -1, &h) != CURLHE_OK)
        return 0;
    mk_str value = mk_str_from_c(h->value);
    if (!mk_num_parse(value, &seconds))
        seconds = mk_date_parse(value, now, &date) && date > now ? (uint64_t)(date - now) : 0;
    return seconds < RETRY_MAX_S ? seconds : RETRY_MAX_S;
}

/* Reads rejectedSpans of a partial success. The number is a string in the JSON encoding of OTLP, but some collectors
 * write a number. */
static uint64_t read_rejected(const char *reply)
{
    static const char key[] = "\"rejectedSpans\"";
    const char *p = strstr(reply, key);
    uint64_t n = 0;
    if (!p)
        return 0;
    p += sizeof key - 1;
    p += strspn(p, " \t\r\n:\"");
    return mk_num_parse(mk_str_of(p, strspn(p, "0123456789")), &n) ? n : 0;
}

static void read_reply(struct otlp_collector *c, CURLcode e, struct otlp_reply *reply)
{
    long status = 0;
    *reply = (struct otlp_reply){.text = c->reply};
    c->reply[c->reply_len] = '\0';
    if (e != CURLE_OK && !c->is_reply_too_long) {
        reply->text = c->error[0] ? c->error : curl_easy_strerror(e);
        return;
    }
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    reply->status = status > 0 ? (unsigned)status : 0;
    reply->retry_s = read_retry_after(c->curl);
    reply->n_rejected = read_rejected(c->reply);
}

bool otlp_collector_wait(struct otlp_collector *c, const int *fds, unsigned n, int timeout_ms,
                         struct otlp_reply *reply)
{
    struct curl_waitfd inputs[2];
    int n_running, n_left;
    for (unsigned i = 0; i < n; i++)
        inputs[i] = (struct curl_waitfd){.fd = fds[i], .events = CURL_WAIT_POLLIN};
    curl_multi_poll(c->multi, inputs, n, timeout_ms, NULL);
    curl_multi_perform(c->multi, &n_running);
    for (CURLMsg *m; (m = curl_multi_info_read(c->multi, &n_left));) {
        if (m->msg != CURLMSG_DONE)
            continue;
        CURLcode e = m->data.result;
        read_reply(c, e, reply);
        curl_multi_remove_handle(c->multi, c->curl);
        c->is_sending = false;
        return true;
    }
    return false;
}
