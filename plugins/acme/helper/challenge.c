/* SPDX-License-Identifier: Apache-2.0 */
#include "challenge.h"

#include <errno.h>
#include <monkey/clock.h>
#include <stdio.h>
#include <time.h>

#include "cert.h"
#include "dns.h"
#include "jws.h"
#include "store.h"

enum { FIRST_MS = 250, PAUSE_MAX_MS = 10000, WHOLE_MS = 300000, TOKEN_MAX = 128, TEXT_MAX = 64 * 1024 };

/* ---- Waiting ---- */

struct acme_backoff acme_backoff_new(void)
{
    return (struct acme_backoff){.until_ms = (int64_t)mk_clock_ms() + WHOLE_MS, .pause_ms = FIRST_MS};
}

bool acme_backoff_wait(struct acme_backoff *p, uint64_t retry_s)
{
    uint64_t ms = p->pause_ms;
    if (retry_s * 1000 > ms)
        ms = retry_s * 1000;
    if ((int64_t)mk_clock_ms() + (int64_t)ms > p->until_ms)
        return false;
    struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
    p->pause_ms = p->pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : p->pause_ms * 2;
    return true;
}

/* ---- The response ---- */

static bool is_http_challenge(const struct acme_cert_spec *spec)
{
    return strcmp(spec->challenge, "http-01") == 0;
}

static bool is_dns_challenge(const struct acme_cert_spec *spec)
{
    return strcmp(spec->challenge, "dns-01") == 0;
}

/* Returns whether the token is base64url (section 8), because it becomes a file name. */
static bool is_token(const char *token)
{
    size_t n = 0;
    for (; token[n]; n++)
        if (!mk_char_is_alpha(token[n]) && !mk_char_is_digit(token[n]) && token[n] != '-' && token[n] != '_')
            return false;
    return n > 0 && n <= TOKEN_MAX;
}

/* Records the file for removal when the order ends. Until then it must stay, because a CA may connect several
 * times, from several networks. */
static void record_response_file(struct acme_client *c, const char *folder, const char *name)
{
    mk_buf_addf(&c->response_files, "%s/%s\n", folder, name);
}

static bool store_response(const struct acme_client *c, const char *name, const char *token,
                           const struct acme_cert_spec *spec, struct acme_error *f)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX), pem = mk_buf_growing(TEXT_MAX);
    char digest[32], sni[ACME_NAME_SIZE];
    acme_name_sni(name, sni, sizeof sni);
    bool ok = acme_jws_key_authorization(&text, c->key, token);
    if (ok && is_http_challenge(spec))
        ok = acme_store_write(ACME_HTTP, token, "", mk_buf_str(&text), f);
    else if (ok && acme_sha256(mk_buf_str(&text), digest) && acme_cert_write_tls_alpn(&pem, name, digest))
        ok = acme_store_write(ACME_ALPN, sni, ".pem", mk_buf_str(&pem), f);
    else
        ok = acme_error_set(f, "cannot store the challenge response for %s: %s", name, acme_key_error());
    mk_buf_free(&text);
    mk_buf_free(&pem);
    return ok;
}

void acme_challenge_remove_responses(struct acme_client *c)
{
    mk_str rest = mk_buf_str(&c->response_files);
    for (mk_str path; (path = mk_str_cut(&rest, '\n')).len;) {
        size_t at = mk_str_find(path, '/');
        char name[512];
        mk_str leaf = mk_str_skip(path, at + 1);
        (void)snprintf(name, sizeof name, "%.*s", MK_STR_ARG(leaf));
        if (mk_str_eq(mk_str_first(path, at), MK_STR(ACME_HTTP)))
            acme_store_remove(ACME_HTTP, name, "");
        else
            acme_store_remove(ACME_ALPN, name, ".pem");
    }
    mk_buf_clear(&c->response_files);
}

/* ---- The authorization ---- */

static const json_t *find_challenge(const json_t *a, const char *type)
{
    const json_t *list = json_object_get(a, "challenges"), *each;
    size_t i;
    json_array_foreach(list, i, each)
    {
        const char *its = acme_json_string(each, "type");
        if (its && strcmp(its, type) == 0)
            return each;
    }
    return NULL;
}

static bool fail_authorization(const json_t *a, const char *name, const char *status,
                               const struct acme_cert_spec *spec, struct acme_error *f)
{
    char what[512];
    struct mk_buf text = mk_buf_fixed(what, sizeof what - 1);
    const json_t *error = json_object_get(find_challenge(a, spec->challenge), "error");
    const char *where = is_dns_challenge(spec)    ? ""
                        : is_http_challenge(spec) ? " on port 80"
                                                  : " on port 443";
    mk_buf_addf(&text, "the authority could not verify %s by %s%s (%s)", name, spec->challenge, where,
                status);
    what[text.len] = '\0';
    acme_client_parse_problem(error, what, f);
    return false;
}

/* Returns whether the authorization is for a name of the order. That of a wildcard names the domain below it. */
static bool is_authorization_in_spec(const json_t *a, const struct acme_cert_spec *spec)
{
    const char *name = acme_json_string(json_object_get(a, "identifier"), "value");
    size_t prefix = json_is_true(json_object_get(a, "wildcard")) ? 2 : 0;
    for (size_t i = 0; name && i < spec->n_names; i++)
        if (strncmp(spec->names[i], "*.", 2) == 0 ? prefix && strcmp(name, spec->names[i] + prefix) == 0
                                                  : !prefix && strcmp(name, spec->names[i]) == 0)
            return true;
    return false;
}

/* Polls until the CA has decided. */
static bool poll_authorization(struct acme_client *c, const char *url, const char *name,
                               const struct acme_cert_spec *spec, struct acme_error *f)
{
    struct acme_backoff patience = acme_backoff_new();
    for (;;) {
        struct acme_response r;
        json_t *a = acme_client_post_json(c, url, MK_STR(""), &r, f);
        uint64_t retry = r.retry_s;
        const char *status = acme_json_string(a, "status");
        acme_response_free(&r);
        bool waits = status && (strcmp(status, "pending") == 0 || strcmp(status, "processing") == 0);
        bool ok = status && strcmp(status, "valid") == 0;
        if (a && !waits && !ok)
            fail_authorization(a, name, status ? status : "no status", spec, f);
        json_decref(a);
        if (ok || !a || !waits)
            return ok;
        if (!acme_backoff_wait(&patience, retry))
            return acme_error_set(f, "the authority did not finish verifying %s", name);
    }
}

static bool is_challenge_pending(const json_t *a, const struct acme_cert_spec *spec)
{
    const char *status = acme_json_string(find_challenge(a, spec->challenge), "status");
    return !status || strcmp(status, "pending") == 0;
}

/* Returns whether the CA is validating the challenge, or has validated it. */
static bool is_challenge_started(struct acme_client *c, const char *authorization,
                                 const struct acme_cert_spec *spec)
{
    struct acme_error ignored = {0};
    json_t *a = acme_client_post_json(c, authorization, MK_STR(""), NULL, &ignored);
    bool is_started = a && !is_challenge_pending(a, spec);
    json_decref(a);
    return is_started;
}

/* Asks the CA to validate the challenge if it is still pending. The CA rejects a second request. If an earlier
 * helper died, the CA may have received its request at any time, even after this helper read the
 * authorization. */
static bool start_challenge(struct acme_client *c, const char *authorization, const json_t *a,
                            const struct acme_cert_spec *spec, struct acme_error *f)
{
    if (!is_challenge_pending(a, spec))
        return true; /* the authorization contains the result, or will contain it */
    struct acme_response r = {0};
    const char *url = acme_json_string(find_challenge(a, spec->challenge), "url");
    bool ok = acme_client_post(c, url, MK_STR("{}"), &r, f);
    bool is_rejected = !ok && f->status >= 400 && f->status < 500;
    acme_response_free(&r);
    if (is_rejected && is_challenge_started(c, authorization, spec)) {
        *f = (struct acme_error){0};
        return true;
    }
    return ok;
}

static bool respond_to_challenge(struct acme_client *c, const char *authorization, const json_t *a,
                                 const char *name, const struct acme_cert_spec *spec, struct acme_error *f)
{
    const json_t *challenge = find_challenge(a, spec->challenge);
    const char *token = acme_json_string(challenge, "token"), *url = acme_json_string(challenge, "url");
    if (!challenge)
        return acme_error_set(f, "the authority does not offer %s for %s", spec->challenge, name);
    if (!token || !is_token(token) || !url)
        return acme_error_set(f, "the challenge for %s is invalid: no token, or no url", name);
    if (is_dns_challenge(spec)) /* acme_challenge_present_records() has added the record */
        return start_challenge(c, authorization, a, spec, f) &&
               poll_authorization(c, authorization, name, spec, f);
    char sni[ACME_NAME_SIZE];
    acme_name_sni(name, sni, sizeof sni);
    record_response_file(c, is_http_challenge(spec) ? ACME_HTTP : ACME_ALPN,
                         is_http_challenge(spec) ? token : sni);
    if (!store_response(c, name, token, spec, f))
        return false;
    return start_challenge(c, authorization, a, spec, f) &&
           poll_authorization(c, authorization, name, spec, f);
}

bool acme_challenge_complete(struct acme_client *c, const char *authorization,
                             const struct acme_cert_spec *spec, struct acme_error *f)
{
    json_t *a = acme_client_post_json(c, authorization, MK_STR(""), NULL, f);
    const char *name = acme_json_string(json_object_get(a, "identifier"), "value");
    const char *status = acme_json_string(a, "status");
    bool ok = false;
    if (a && (!is_authorization_in_spec(a, spec) || !status))
        acme_error_set(f, "the authority requested a verification of %s, which is not in the order",
                       name ? name : "no name");
    else if (a && strcmp(status, "valid") == 0)
        ok = true; /* validated for an earlier order */
    else if (a && strcmp(status, "pending") == 0)
        ok = respond_to_challenge(c, authorization, a, name, spec, f);
    else if (a)
        fail_authorization(a, name, status, spec, f);
    json_decref(a);
    return ok;
}

/* Adds the record for one authorization, if it is still pending. Sets *added. */
static bool present_record(struct acme_client *c, const json_t *a, const struct acme_cert_spec *spec,
                           bool *added, struct acme_error *f)
{
    const char *name = acme_json_string(json_object_get(a, "identifier"), "value");
    const char *status = acme_json_string(a, "status");
    const char *token = acme_json_string(find_challenge(a, spec->challenge), "token");
    if (!is_authorization_in_spec(a, spec) || !status || strcmp(status, "pending") != 0 || !token ||
        !is_token(token))
        return true; /* acme_challenge_complete() reports what is wrong */
    *added = true;
    return acme_dns_present(c, name, token, f);
}

bool acme_challenge_present_records(struct acme_client *c, const json_t *authorizations,
                                    const struct acme_cert_spec *spec, struct acme_error *f)
{
    const json_t *each;
    size_t i;
    bool added = false, ok = true;
    if (!is_dns_challenge(spec))
        return true;
    json_array_foreach(authorizations, i, each)
    {
        json_t *a = acme_client_post_json(c, json_string_value(each), MK_STR(""), NULL, f);
        ok = a && present_record(c, a, spec, &added, f);
        json_decref(a);
        if (!ok)
            return false;
    }
    struct timespec t = {.tv_sec = (time_t)c->plan->propagation_s};
    while (added && nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
    return true;
}
