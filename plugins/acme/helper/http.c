/* SPDX-License-Identifier: Apache-2.0 */
#include "http.h"

#include <curl/curl.h>
#include <monkey/mem.h>
#include <monkey/text.h>
#include <time.h>

enum { BODY_MAX = 1 << 20, CONNECT_S = 30, WHOLE_S = 90, RETRY_MAX_S = 8 * 86400 };

struct acme_http {
    CURL *curl;
    struct curl_slist *fields;
    char why[CURL_ERROR_SIZE];
};

/* ---- Responses ---- */

static size_t append_body(char *p, size_t size, size_t n, void *ctx)
{
    struct mk_buf *body = ctx;
    mk_buf_add(body, mk_str_of(p, size * n));
    return body->failed ? 0 : size * n; /* 0 aborts the transfer */
}

static void copy_response_header(CURL *c, const char *name, char *buf, size_t cap)
{
    struct curl_header *h;
    *buf = '\0';
    if (curl_easy_header(c, name, 0, CURLH_HEADER, -1, &h) != CURLHE_OK || strlen(h->value) >= cap)
        return;
    memcpy(buf, h->value, strlen(h->value) + 1);
}

static bool is_base64url(const char *text)
{
    for (; *text; text++)
        if (!mk_char_is_alpha(*text) && !mk_char_is_digit(*text) && *text != '-' && *text != '_')
            return false;
    return true;
}

/* Parses a number of seconds or a date. libcurl could do so, but later versions cap the value at 6 hours. */
static uint64_t read_retry_after(CURL *c)
{
    char text[64];
    uint64_t seconds = 0;
    int64_t now = time(NULL), date = 0;
    copy_response_header(c, "Retry-After", text, sizeof text);
    mk_str field = mk_str_from_c(text);
    if (!mk_num_parse(field, &seconds))
        seconds = mk_date_parse(field, now, &date) && date > now ? (uint64_t)(date - now) : 0;
    return seconds < RETRY_MAX_S ? seconds : RETRY_MAX_S;
}

static void read_response(CURL *c, struct acme_response *r)
{
    char date[64];
    long status = 0;
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    r->status = status > 0 ? (unsigned)status : 0;
    r->retry_s = read_retry_after(c);
    copy_response_header(c, "Content-Type", r->type, sizeof r->type);
    copy_response_header(c, "Location", r->location, sizeof r->location);
    copy_response_header(c, "Replay-Nonce", r->nonce, sizeof r->nonce);
    copy_response_header(c, "Date", date, sizeof date);
    if (!is_base64url(r->nonce))
        r->nonce[0] = '\0';
    if (!mk_date_parse(mk_str_from_c(date), time(NULL), &r->date))
        r->date = 0;
}

void acme_response_free(struct acme_response *r)
{
    mk_buf_free(&r->body);
}

/* ---- Requests ---- */

bool acme_http_is_url(const char *url)
{
    return url && mk_str_starts(mk_str_from_c(url), MK_STR("https://")) && strlen(url) < ACME_URL_MAX;
}

static void set_curl_options(struct acme_http *n, const char *agent, const char *authority)
{
    CURL *c = n->curl;
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, n->why);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_USERAGENT, agent);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)WHOLE_S);
    curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, n->fields);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, append_body);
    curl_easy_setopt(c, CURLOPT_MAXFILESIZE, (long)BODY_MAX);
    if (authority) {
        curl_easy_setopt(c, CURLOPT_CAINFO, authority);
        curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
    }
}

struct acme_http *acme_http_open(const char *agent, const char *authority, struct acme_error *f)
{
    struct acme_http *n = mk_mem_zalloc(1, sizeof *n);
    if (n && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) {
        n->curl = curl_easy_init();
        n->fields = curl_slist_append(NULL, "Content-Type: application/jose+json");
    }
    if (n && n->curl && n->fields) {
        set_curl_options(n, agent, authority);
        return n;
    }
    acme_http_close(n);
    acme_error_set_global(f, "no memory");
    return NULL;
}

void acme_http_close(struct acme_http *n)
{
    if (!n)
        return;
    curl_easy_cleanup(n->curl);
    curl_slist_free_all(n->fields);
    mk_mem_free(n);
    curl_global_cleanup();
}

static bool report_curl_error(const struct acme_http *n, const char *url, CURLcode e,
                              const struct acme_response *r, struct acme_error *f)
{
    if (r->body.failed)
        return acme_error_set_global(f, "the response of %s exceeds %d bytes", url, BODY_MAX);
    return acme_error_set_global(f, "cannot reach %s: %s", url, n->why[0] ? n->why : curl_easy_strerror(e));
}

bool acme_http_request(struct acme_http *n, const char *url, mk_str message, struct acme_response *r,
                       struct acme_error *f)
{
    CURL *c = n->curl;
    *r = (struct acme_response){.body = mk_buf_growing(BODY_MAX)};
    n->why[0] = '\0';
    if (!acme_http_is_url(url))
        return acme_error_set_global(f, "`%.200s` is not a URL that begins with https://", url ? url : "");
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, &r->body);
    curl_easy_setopt(c, CURLOPT_HTTPGET, 1L);
    if (message.p) {
        curl_easy_setopt(c, CURLOPT_POST, 1L);
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, message.p);
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)message.len);
    }
    CURLcode e = curl_easy_perform(c);
    if (e != CURLE_OK)
        return report_curl_error(n, url, e, r, f);
    read_response(c, r);
    return true;
}
