/* SPDX-License-Identifier: Apache-2.0 */
#include "renewal.h"

#include <monkey/json.h>
#include <monkey/text.h>
#include <stdio.h>

#include "renewal_info.h"
#include "store.h"

enum { DAY_S = 86400, MINUTE_S = 60, FAILURE_S = 6 * 3600, TEXT_MAX = 64 * 1024 };

/* ---- Saved state ---- */

static json_t *read_state(const struct acme_cert_spec *spec)
{
    struct mk_buf text;
    int e = acme_store_read(ACME_RENEWAL, spec->name, ".json", &text);
    json_t *o = e ? NULL : json_loadb(text.p ? text.p : "", text.len, 0, NULL);
    mk_buf_free(&text);
    return o;
}

static int64_t read_time(const json_t *o, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(o, key));
    return n > 0 ? n : 0;
}

bool acme_renewal_load(struct acme_renewal *r, const struct acme_cert_spec *spec, const char *id)
{
    json_t *o = read_state(spec);
    const char *its = acme_json_string(o, "certificate"), *url = acme_json_string(o, "url");
    bool ok = its && url && strcmp(its, id) == 0 && (!*url || acme_http_is_url(url));
    *r = (struct acme_renewal){0};
    if (ok) {
        (void)snprintf(r->url, sizeof r->url, "%s", url);
        r->start = read_time(o, "start");
        r->end = read_time(o, "end");
        r->at = read_time(o, "at");
        r->check = read_time(o, "check");
        r->next = read_time(o, "next");
    }
    json_decref(o);
    return ok;
}

static void save_state(const struct acme_renewal *r, const struct acme_cert_spec *spec, const char *id)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    struct mk_json_writer w = mk_json_writer_to(&text);
    struct acme_error f;
    mk_json_begin_object(&w);
    mk_json_cstr(mk_json_key(&w, "certificate"), id);
    mk_json_cstr(mk_json_key(&w, "url"), r->url);
    mk_json_int(mk_json_key(&w, "start"), r->start);
    mk_json_int(mk_json_key(&w, "end"), r->end);
    mk_json_int(mk_json_key(&w, "at"), r->at);
    mk_json_int(mk_json_key(&w, "check"), r->check);
    mk_json_int(mk_json_key(&w, "next"), r->next);
    mk_json_end_object(&w);
    mk_buf_add_char(&text, '\n');
    if (!text.failed && !acme_store_write(ACME_RENEWAL, spec->name, ".json", mk_buf_str(&text), &f))
        acme_report_log(MK_LOG_WARN, "%s", f.text);
    mk_buf_free(&text);
}

/* ---- Question ---- */

static int64_t random_between(int64_t from, int64_t to)
{
    uint64_t n;
    mk_random(&n, sizeof n);
    return from + (int64_t)(n % (uint64_t)(to - from));
}

/* The instant stays the same while the window does: otherwise renewals would gather at its end. */
static void set_window(struct acme_renewal *r, const struct acme_cert_spec *spec,
                       const struct acme_renewal_window *w)
{
    if (r->at && r->start == w->start && r->end == w->end)
        return;
    r->start = w->start;
    r->end = w->end;
    r->at = random_between(w->start, w->end);
    if (w->explanation)
        acme_report_log(MK_LOG_WARN, "%s: the authority changes the time of the next renewal: see %s",
                        spec->name, w->explanation);
}

static bool read_response(struct acme_renewal *r, const struct acme_cert_spec *spec,
                          const struct acme_response *reply)
{
    struct acme_renewal_window w;
    json_t *o = json_loadb(reply->body.p ? reply->body.p : "", reply->body.len, 0, NULL);
    bool ok = reply->status == 200 && acme_renewal_window_parse(o, &w);
    if (ok)
        set_window(r, spec, &w);
    json_decref(o);
    return ok;
}

static int64_t bounded_delay(uint64_t retry_s)
{
    if (!retry_s || retry_s > DAY_S)
        return DAY_S;
    return retry_s < MINUTE_S ? MINUTE_S : (int64_t)retry_s;
}

static void send_question(const struct acme_job *job, struct acme_renewal *r,
                          const struct acme_cert_spec *spec, const char *id, int64_t now)
{
    char url[ACME_URL_MAX + ACME_CERT_ID_MAX];
    struct acme_response reply = {0};
    struct acme_error f = {0};
    struct acme_http *net = acme_http_open(job->agent, job->authority, &f);
    (void)snprintf(url, sizeof url, "%s/%s", r->url, id);
    bool ok = net && acme_http_request(net, url, MK_STR_NULL, &reply, &f);
    if (ok && !read_response(r, spec, &reply))
        ok =
            acme_error_set(&f, "the response of %s (status %u) has no valid renewal time", url, reply.status);
    r->check = now + (ok ? bounded_delay(reply.retry_s) : FAILURE_S);
    if (!ok)
        acme_report_log(MK_LOG_DEBUG, "%s: %s; %s", spec->name, f.text,
                        r->at ? "the earlier one stays" : "RenewAfter decides");
    acme_response_free(&reply);
    acme_http_close(net);
}

void acme_renewal_ask(const struct acme_job *job, const struct acme_cert_spec *spec, const char *id,
                      const char *url, int64_t now)
{
    struct acme_renewal r;
    (void)acme_renewal_load(&r, spec, id);
    (void)snprintf(r.url, sizeof r.url, "%s", url);
    if (*url)
        send_question(job, &r, spec, id, now);
    else
        r.check = now + DAY_S;
    save_state(&r, spec, id);
}

void acme_renewal_save_next(const struct acme_cert_spec *spec, const char *id, int64_t next)
{
    struct acme_renewal r;
    if (!acme_renewal_load(&r, spec, id) || r.next == next)
        return;
    r.next = next;
    save_state(&r, spec, id);
}

/* ---- Time ---- */

/* Never waits for the last tenth of the lifetime. Does not renew a certificate in its first hours either, in case the
 * authority's suggestions are always in the past. If a certificate has expired, the clock may be wrong: `due`
 * takes that into account. */
int64_t acme_renewal_adjust(const struct acme_renewal *r, const struct acme_validity *life, int64_t made,
                            int64_t now, int64_t due)
{
    int64_t whole = life->to - life->from, latest = life->to - whole / 10;
    int64_t pause = whole / 6 < DAY_S / 2 ? whole / 6 : DAY_S / 2, earliest = made <= now ? made + pause : 0;
    if (!r->at || r->end <= life->from || r->start >= life->to || now >= life->to)
        return due;
    int64_t at = r->at < latest ? r->at : latest;
    return at > earliest ? at : earliest;
}
