/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "jws.h"

enum { MESSAGE_MAX = 512 * 1024, NONCES_MAX = 20, SKEW_S = 3600, ANSWERS_MAX = 256 * 1024 };

/* ---- Problems ---- */

static const char *strip_error_prefix(const char *type)
{
    static const char prefix[] = "urn:ietf:params:acme:error:";
    return strncmp(type, prefix, sizeof prefix - 1) == 0 ? type + sizeof prefix - 1 : type;
}

static void append_problem(struct mk_buf *out, const json_t *problem)
{
    const char *detail = acme_json_string(problem, "detail"), *type = acme_json_string(problem, "type");
    if (detail)
        mk_buf_add(out, mk_str_from_c(detail));
    if (type)
        mk_buf_addf(out, "%s(%s)", detail ? " " : "", strip_error_prefix(type));
}

static void append_subproblems(struct mk_buf *out, const json_t *problem)
{
    const json_t *list = json_object_get(problem, "subproblems"), *each;
    size_t i;
    json_array_foreach(list, i, each)
    {
        const char *name = acme_json_string(json_object_get(each, "identifier"), "value");
        mk_buf_addf(out, "; %s%s", name ? name : "", name ? ": " : "");
        append_problem(out, each);
    }
}

void acme_client_parse_problem(const json_t *problem, const char *what, struct acme_error *f)
{
    char buf[900];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    const char *type = acme_json_string(problem, "type");
    append_problem(&text, problem);
    append_subproblems(&text, problem);
    (void)snprintf(f->type, sizeof f->type, "%s", type ? strip_error_prefix(type) : "");
    if (text.len == 0 && !text.failed)
        mk_buf_add(&text, MK_STR("no reason given"));
    acme_error_set(f, "%s: %.*s", what, (int)text.len, text.p);
}

/* Returns whether the remaining certificates would fail as well, because the authority rejects the account or
 * has an internal error. A rate limit may apply to one name only. */
static bool affects_all_certificates(const struct acme_error *f)
{
    static const char *const types[] = {"accountDoesNotExist", "unauthorized", "userActionRequired",
                                        "externalAccountRequired", "serverInternal"};
    for (size_t i = 0; i < MK_LEN(types); i++)
        if (strcmp(f->type, types[i]) == 0)
            return true;
    return f->status >= 500;
}

static bool parse_error_response(const char *url, const struct acme_response *r, struct acme_error *f)
{
    char what[ACME_URL_MAX + 64];
    json_t *problem = json_loadb(r->body.p ? r->body.p : "", r->body.len, 0, NULL);
    f->type[0] = '\0';
    f->status = r->status;
    f->wait_s = r->retry_s;
    (void)snprintf(what, sizeof what, "the authority rejected the request with status %u", r->status);
    if (json_is_object(problem) && acme_json_string(problem, "type"))
        acme_client_parse_problem(problem, what, f);
    else
        acme_error_set(f, "%s responded with status %u", url, r->status);
    json_decref(problem);
    f->affects_all = affects_all_certificates(f);
    return false;
}

/* ---- Requests ---- */

static void save_nonce(struct acme_client *c, const struct acme_response *r)
{
    memcpy(c->nonce, r->nonce, sizeof c->nonce);
}

static bool fetch_nonce(struct acme_client *c, struct acme_error *f)
{
    struct acme_response r;
    if (c->nonce[0])
        return true;
    bool ok = acme_http_request(c->net, c->new_nonce, MK_STR_NULL, &r, f);
    if (ok && r.status / 100 != 2)
        ok = parse_error_response(c->new_nonce, &r, f);
    save_nonce(c, &r);
    acme_response_free(&r);
    if (ok && !c->nonce[0])
        return acme_error_set_global(f, "the response of %s has no nonce", c->new_nonce);
    return ok;
}

static bool post_signed(struct acme_client *c, const char *url, mk_str payload, struct acme_response *r,
                        struct acme_error *f)
{
    struct mk_buf message = mk_buf_growing(MESSAGE_MAX);
    if (!fetch_nonce(c, f))
        return false;
    bool ok = acme_jws_sign(&message, c->key, c->account[0] ? c->account : NULL, mk_str_from_c(c->nonce), url,
                            payload);
    c->nonce[0] = '\0'; /* valid for one request */
    if (!ok)
        acme_error_set_global(f, "cannot sign a request: %s", acme_key_error());
    else if ((ok = acme_http_request(c->net, url, mk_buf_str(&message), r, f)))
        save_nonce(c, r);
    mk_buf_free(&message);
    return ok;
}

bool acme_client_post(struct acme_client *c, const char *url, mk_str payload, struct acme_response *r,
                      struct acme_error *f)
{
    for (unsigned tries = 1;; tries++) {
        *r = (struct acme_response){0};
        *f = (struct acme_error){0};
        if (!post_signed(c, url, payload, r, f))
            return false;
        if (r->status / 100 == 2)
            return true;
        parse_error_response(url, r, f);
        if (strcmp(f->type, "badNonce") != 0 || tries == NONCES_MAX)
            return false;
        acme_response_free(r);
    }
}

json_t *acme_client_post_json(struct acme_client *c, const char *url, mk_str payload, struct acme_response *r,
                              struct acme_error *f)
{
    struct acme_response own, *reply = r ? r : &own;
    json_t *object = NULL;
    if (acme_client_post(c, url, payload, reply, f)) {
        object = json_loadb(reply->body.p ? reply->body.p : "", reply->body.len, 0, NULL);
        if (!json_is_object(object)) {
            json_decref(object);
            object = NULL;
            acme_error_set(f, "the response of %s is not a JSON object", url);
        }
    }
    if (!r)
        acme_response_free(&own);
    return object;
}

/* ---- The directory ---- */

static bool read_directory_url(char buf[ACME_URL_MAX], const json_t *directory, const char *key,
                               struct acme_error *f)
{
    const char *url = acme_json_string(directory, key);
    if (!acme_http_is_url(url))
        return acme_error_set_global(
            f, "the directory has no `%s` that begins with https://: is it an ACME directory?", key);
    memcpy(buf, url, strlen(url) + 1);
    return true;
}

static bool read_directory(struct acme_client *c, const json_t *d, struct acme_error *f)
{
    const json_t *meta = json_object_get(d, "meta");
    const char *terms = acme_json_string(meta, "termsOfService");
    if (!read_directory_url(c->new_nonce, d, "newNonce", f) ||
        !read_directory_url(c->new_account, d, "newAccount", f) ||
        !read_directory_url(c->new_order, d, "newOrder", f))
        return false;
    const char *renewal = acme_json_string(d, "renewalInfo");
    (void)snprintf(c->terms, sizeof c->terms, "%s", terms ? terms : "");
    (void)snprintf(c->renewal_info, sizeof c->renewal_info, "%s", acme_http_is_url(renewal) ? renewal : "");
    c->wants_binding = json_is_true(json_object_get(meta, "externalAccountRequired"));
    return true;
}

/* Warns if the clock of this machine differs from the authority's: the helper renews certificates by this
 * clock, but clients check their validity by their own clocks. */
static void compare_clocks(struct acme_client *c, int64_t theirs)
{
    int64_t off = theirs ? time(NULL) - theirs : 0;
    c->has_same_time = theirs && llabs(off) <= SKEW_S;
    if (llabs(off) > SKEW_S)
        acme_report_log(MK_LOG_WARN, "the clock of this machine is %lld minutes %s that of the authority",
                        llabs((long long)off) / 60, off < 0 ? "behind" : "ahead of");
}

bool acme_client_open(struct acme_client *c, const struct acme_job *plan, struct acme_error *f)
{
    struct acme_response r = {0};
    *c = (struct acme_client){.plan = plan,
                              .response_files = mk_buf_growing(ANSWERS_MAX),
                              .dns_records = mk_buf_growing(ANSWERS_MAX)};
    c->net = acme_http_open(plan->agent, plan->authority, f);
    bool ok = c->net && acme_http_request(c->net, plan->directory, MK_STR_NULL, &r, f);
    json_t *d = ok ? json_loadb(r.body.p ? r.body.p : "", r.body.len, 0, NULL) : NULL;
    if (ok && r.status != 200)
        ok = parse_error_response(plan->directory, &r, f);
    else if (ok && !json_is_object(d))
        ok = acme_error_set_global(f, "%s is not an ACME directory: not a JSON object", plan->directory);
    ok = ok && read_directory(c, d, f);
    if (ok)
        compare_clocks(c, r.date);
    c->directory = d;
    acme_response_free(&r);
    f->affects_all = true;
    return ok;
}

void acme_client_close(struct acme_client *c)
{
    acme_http_close(c->net);
    EVP_PKEY_free(c->key);
    mk_buf_free(&c->response_files);
    json_decref(c->directory);
    mk_buf_free(&c->dns_records);
    *c = (struct acme_client){0};
}
