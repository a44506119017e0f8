/* SPDX-License-Identifier: Apache-2.0 */
#include "order.h"

#include <errno.h>
#include <monkey/json.h>

#include "cert.h"
#include "challenge.h"
#include "dns.h"
#include "jws.h"
#include "renewal.h"
#include "renewal_info.h"
#include "store.h"

enum { TEXT_MAX = 1 << 20, SHORT_S = 10 * 86400 };

struct order {
    struct acme_client *client;
    const struct acme_cert_spec *spec;
    EVP_PKEY *key; /* the certificate's key */
    char url[ACME_URL_MAX];
    json_t *object;            /* the latest order object from the CA */
    struct acme_validity life; /* the certificate's validity period */
    uint64_t retry_s;          /* delay before the next request, as the authority demands */
};

/* ---- Saved state ---- */

static void write_identifiers(struct mk_json_writer *w, const struct acme_cert_spec *spec)
{
    mk_json_begin_array(w);
    for (size_t i = 0; i < spec->n_names; i++) {
        mk_json_begin_object(w);
        mk_json_cstr(mk_json_key(w, "type"), acme_name_address(spec->names[i], NULL) ? "ip" : "dns");
        mk_json_cstr(mk_json_key(w, "value"), spec->names[i]);
        mk_json_end_object(w);
    }
    mk_json_end_array(w);
}

static void write_profile(struct mk_json_writer *w, const struct acme_cert_spec *spec)
{
    if (spec->profile)
        mk_json_cstr(mk_json_key(w, "profile"), spec->profile);
}

static bool same_profile(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool save_order(const struct order *o, struct acme_error *f)
{
    struct mk_buf pem = mk_buf_growing(TEXT_MAX), text = mk_buf_growing(TEXT_MAX);
    struct mk_json_writer w = mk_json_writer_to(&text);
    mk_json_begin_object(&w);
    mk_json_cstr(mk_json_key(&w, "url"), o->url);
    mk_json_cstr(mk_json_key(&w, "account"), o->client->account);
    write_identifiers(mk_json_key(&w, "identifiers"), o->spec);
    write_profile(&w, o->spec);
    mk_json_end_object(&w);
    mk_buf_add_char(&text, '\n');
    bool ok = acme_key_write_pem(o->key, &pem) && !text.failed;
    if (!ok)
        acme_error_set(f, "no memory");
    ok = ok && acme_store_write(ACME_ORDERS, o->spec->name, ".key", mk_buf_str(&pem), f) &&
         acme_store_write(ACME_ORDERS, o->spec->name, ".json", mk_buf_str(&text), f);
    mk_buf_free(&pem);
    mk_buf_free(&text);
    return ok;
}

static void delete_saved_order(const struct order *o)
{
    acme_store_remove(ACME_ORDERS, o->spec->name, ".json");
    acme_store_remove(ACME_ORDERS, o->spec->name, ".key");
}

static json_t *identifiers_json(const struct acme_cert_spec *spec)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    struct mk_json_writer w = mk_json_writer_to(&text);
    write_identifiers(&w, spec);
    json_t *list = json_loadb(text.p ? text.p : "", text.len, 0, NULL);
    mk_buf_free(&text);
    return list;
}

static bool is_saved_order_of(const json_t *kept, const struct order *o)
{
    json_t *names = identifiers_json(o->spec);
    const char *account = acme_json_string(kept, "account");
    bool ok = account && strcmp(account, o->client->account) == 0 &&
              same_profile(acme_json_string(kept, "profile"), o->spec->profile) &&
              json_equal(names, json_object_get(kept, "identifiers"));
    json_decref(names);
    return ok;
}

static bool load_saved_key(struct order *o)
{
    struct mk_buf text;
    int e = acme_store_read(ACME_ORDERS, o->spec->name, ".key", &text);
    o->key = e ? NULL : acme_key_read_pem(mk_buf_str(&text));
    mk_buf_free(&text);
    if (o->key && acme_key_has_type(o->key, o->spec->key))
        return true;
    EVP_PKEY_free(o->key);
    o->key = NULL;
    return false;
}

/* Loads an unfinished order for the same names. */
static bool load_saved_order(struct order *o)
{
    struct mk_buf text;
    int e = acme_store_read(ACME_ORDERS, o->spec->name, ".json", &text);
    json_t *kept = e ? NULL : json_loadb(text.p ? text.p : "", text.len, 0, NULL);
    const char *url = acme_json_string(kept, "url");
    mk_buf_free(&text);
    bool ok = acme_http_is_url(url) && is_saved_order_of(kept, o) && load_saved_key(o);
    if (ok)
        memcpy(o->url, url, strlen(url) + 1);
    json_decref(kept);
    return ok;
}

/* ---- Requests ---- */

static bool set_order_object(struct order *o, json_t *object, const struct acme_response *r)
{
    if (!object)
        return false;
    json_decref(o->object);
    o->object = object;
    o->retry_s = r->retry_s;
    return true;
}

static bool post_order(struct order *o, const char *url, mk_str payload, struct acme_error *f)
{
    struct acme_response r;
    bool ok = set_order_object(o, acme_client_post_json(o->client, url, payload, &r, f), &r);
    acme_response_free(&r);
    return ok;
}

static bool has_status(const struct order *o, const char *status)
{
    const char *its = acme_json_string(o->object, "status");
    return its && strcmp(its, status) == 0;
}

/* Returns the value of a line `NAME: VALUE` before the certificate; "": there is none. */
static mk_str read_cert_note(mk_str text, mk_str prefix)
{
    while (text.p) {
        mk_str line = mk_str_cut(&text, '\n');
        if (mk_str_starts(line, prefix))
            return mk_str_skip(line, prefix.len);
        if (mk_str_starts(line, MK_STR("-----")))
            break;
    }
    return MK_STR("");
}

static bool is_cert_from_directory(mk_str text, const char *directory)
{
    return mk_str_eq(read_cert_note(text, MK_STR("Directory: ")), mk_str_from_c(directory));
}

static bool check_profile(const struct order *o, struct acme_error *f)
{
    char buf[300];
    struct mk_buf offered = mk_buf_fixed(buf, sizeof buf);
    if (!o->spec->profile || acme_profile_is_offered(o->client->directory, o->spec->profile, &offered))
        return true;
    return acme_error_set(f, "the authority has no profile `%s`; its profiles: %.*s", o->spec->profile,
                          offered.len ? (int)offered.len : 4, offered.len ? buf : "none");
}

/* Writes the ID of the certificate that the new one replaces (RFC 9773, section 5); "": unknown. */
static void find_replaced_cert(const struct order *o, char id[ACME_CERT_ID_MAX])
{
    struct mk_buf text;
    id[0] = '\0';
    if (!o->client->renewal_info[0] || acme_store_read(ACME_CERTIFICATES, o->spec->name, ".pem", &text))
        return;
    if (is_cert_from_directory(mk_buf_str(&text), o->client->plan->directory))
        acme_cert_id(mk_buf_str(&text), id);
    mk_buf_free(&text);
}

static bool post_new_order(struct order *o, const char *replaced, struct acme_response *r,
                           struct acme_error *f)
{
    struct mk_buf payload = mk_buf_growing(TEXT_MAX);
    struct mk_json_writer w = mk_json_writer_to(&payload);
    mk_json_begin_object(&w);
    write_identifiers(mk_json_key(&w, "identifiers"), o->spec);
    write_profile(&w, o->spec);
    if (*replaced)
        mk_json_cstr(mk_json_key(&w, "replaces"), replaced);
    mk_json_end_object(&w);
    bool ok =
        payload.failed
            ? acme_error_set(f, "no memory")
            : set_order_object(
                  o, acme_client_post_json(o->client, o->client->new_order, mk_buf_str(&payload), r, f), r);
    mk_buf_free(&payload);
    return ok;
}

/* If the authority rejects the order, the reason may be the certificate to replace, for example because another order
 * has already replaced it. */
static bool request_order(struct order *o, struct acme_response *r, struct acme_error *f)
{
    char replaced[ACME_CERT_ID_MAX];
    find_replaced_cert(o, replaced);
    if (post_new_order(o, replaced, r, f))
        return true;
    if (!*replaced || f->status / 100 != 4 || f->status == 429 || strcmp(f->type, "accountDoesNotExist") == 0)
        return false;
    acme_report_log(MK_LOG_DEBUG, "%s: %s; trying without `replaces`", o->spec->name, f->text);
    acme_response_free(r);
    return post_new_order(o, "", r, f);
}

static bool create_order(struct order *o, struct acme_error *f)
{
    struct acme_response r = {0};
    if (!check_profile(o, f))
        return false;
    o->key = acme_key_new(o->spec->key);
    if (!o->key)
        return acme_error_set(f, "cannot create a key: %s", acme_key_error());
    bool ok = request_order(o, &r, f);
    if (ok && !acme_http_is_url(r.location))
        ok = acme_error_set(f, "the response of the authority contains no order URL");
    if (ok)
        memcpy(o->url, r.location, sizeof o->url);
    acme_response_free(&r);
    return ok && save_order(o, f);
}

/* Continues the saved order, or creates a new one. */
static bool resume_or_create_order(struct order *o, struct acme_error *f)
{
    struct acme_error old = {0};
    if (load_saved_order(o)) {
        if (post_order(o, o->url, MK_STR(""), &old) && !has_status(o, "invalid"))
            return true;
        if (old.text[0] && (!old.status || old.status >= 500)) { /* temporary: keep the order */
            *f = old;
            return false;
        }
        EVP_PKEY_free(o->key);
        o->key = NULL;
        o->url[0] = '\0';
    }
    delete_saved_order(o);
    return create_order(o, f);
}

/* ---- Steps ---- */

static bool complete_authorizations(struct order *o, struct acme_error *f)
{
    const json_t *list = json_object_get(o->object, "authorizations"), *each;
    size_t i;
    if (!acme_challenge_present_records(o->client, list, o->spec, f))
        return false;
    json_array_foreach(list, i, each) if (!acme_challenge_complete(o->client, json_string_value(each),
                                                                   o->spec, f)) return false;
    return post_order(o, o->url, MK_STR(""), f);
}

/* Returns whether the CA rejected the request only because an earlier helper, which died, sent the same one. */
static bool is_order_finalized(struct order *o, struct acme_error *f)
{
    struct acme_error ignored = {0};
    bool is_rejected = f->status >= 400 && f->status < 500;
    if (!is_rejected || !post_order(o, o->url, MK_STR(""), &ignored) ||
        !(has_status(o, "processing") || has_status(o, "valid")))
        return false;
    *f = (struct acme_error){0};
    return true;
}

static bool finalize_order(struct order *o, struct acme_error *f)
{
    struct mk_buf der = mk_buf_growing(TEXT_MAX), payload = mk_buf_growing(TEXT_MAX);
    const char *url = acme_json_string(o->object, "finalize");
    bool ok = acme_cert_write_csr(&der, o->key, o->spec);
    struct mk_json_writer w = mk_json_writer_to(&payload);
    mk_json_begin_object(&w);
    mk_json_begin_string(mk_json_key(&w, "csr"));
    acme_base64url_encode(&payload, mk_buf_str(&der));
    mk_json_end_string(&w);
    mk_json_end_object(&w);
    if (!ok || payload.failed)
        ok = acme_error_set(f, "cannot create the signing request: %s", acme_key_error());
    else
        ok = post_order(o, url, mk_buf_str(&payload), f) || is_order_finalized(o, f);
    mk_buf_free(&der);
    mk_buf_free(&payload);
    return ok;
}

static bool set_order_error(const struct order *o, struct acme_error *f)
{
    const char *status = acme_json_string(o->object, "status");
    const json_t *error = json_object_get(o->object, "error");
    if (has_status(o, "invalid"))
        acme_client_parse_problem(error, "the authority rejected the order", f);
    else
        acme_error_set(f, "unknown order status `%.50s`", status ? status : "");
    return false;
}

/* Advances the order from any state to `valid`. */
static bool advance_order(struct order *o, struct acme_error *f)
{
    struct acme_backoff patience = acme_backoff_new();
    bool is_authorized = false, is_final = false;
    while (!has_status(o, "valid")) {
        bool first = has_status(o, "pending") ? !is_authorized : has_status(o, "ready") && !is_final;
        if (has_status(o, "pending") && first) {
            is_authorized = true;
            if (!complete_authorizations(o, f))
                return false;
        } else if (has_status(o, "ready") && first) {
            is_final = true;
            if (!finalize_order(o, f))
                return false;
        } else if (!has_status(o, "pending") && !has_status(o, "ready") && !has_status(o, "processing")) {
            return set_order_error(o, f);
        } else if (!acme_backoff_wait(&patience, o->retry_s)) {
            return acme_error_set(f, "the authority did not finish the order in time");
        } else if (!post_order(o, o->url, MK_STR(""), f)) {
            return false;
        }
    }
    return true;
}

/* ---- The certificate ---- */

static bool install_certificate(struct order *o, mk_str chain, struct acme_error *f)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX + 65536);
    if (!acme_cert_check(chain, o->key, o->spec, &o->life, f))
        return false;
    mk_buf_addf(&text, "Created by monkey, which will replace it.\nDirectory: %s\n",
                o->client->plan->directory);
    if (o->spec->profile)
        mk_buf_addf(&text, "Profile: %s\n", o->spec->profile);
    mk_buf_add(&text, chain);
    mk_buf_add(&text, MK_STR("\n"));
    bool ok = acme_key_write_pem(o->key, &text) || acme_error_set(f, "no memory");
    ok = ok && acme_store_write(ACME_CERTIFICATES, o->spec->name, ".pem", mk_buf_str(&text), f);
    mk_buf_free(&text);
    return ok;
}

static bool download_certificate(struct order *o, struct acme_error *f)
{
    const char *url = acme_json_string(o->object, "certificate");
    struct acme_response r;
    bool ok =
        acme_client_post(o->client, url, MK_STR(""), &r, f) && install_certificate(o, mk_buf_str(&r.body), f);
    acme_response_free(&r);
    return ok;
}

bool acme_order_obtain_cert(struct acme_client *c, const struct acme_cert_spec *spec, struct acme_error *f)
{
    struct order o = {.client = c, .spec = spec};
    bool ok = resume_or_create_order(&o, f) && advance_order(&o, f) && download_certificate(&o, f);
    if (ok || !f->affects_all) { /* the order is finished or has failed */
        delete_saved_order(&o);
        acme_challenge_remove_responses(c);
    }
    acme_dns_remove_added(c); /* a continued order adds its records again */
    if (ok)
        acme_report_log(MK_LOG_INFO, "%s: new certificate obtained, valid for %lld hours", spec->name,
                        (long long)(o.life.to - o.life.from) / 3600);
    json_decref(o.object);
    EVP_PKEY_free(o.key);
    return ok;
}

/* ---- Renewal ---- */

static bool check_installed_cert(mk_str text, const struct acme_job *plan, const struct acme_cert_spec *spec,
                                 struct acme_validity *life, struct acme_error *f)
{
    EVP_PKEY *key = acme_key_read_pem(text);
    bool ok = false;
    if (!key)
        acme_error_set(f, "the certificate file is damaged: no key found");
    else if (!acme_key_has_type(key, spec->key))
        acme_error_set(f, "the key type differs from the configuration");
    else if (!is_cert_from_directory(text, plan->directory))
        acme_error_set(f, "its certificate comes from another authority");
    else if (!mk_str_eq(read_cert_note(text, MK_STR("Profile: ")),
                        mk_str_from_c(spec->profile ? spec->profile : "")))
        acme_error_set(f, "the profile of its certificate differs from the configuration");
    else
        ok = acme_cert_check(text, key, spec, life, f);
    EVP_PKEY_free(key);
    return ok;
}

/* Returns when to renew a certificate that is due: a new certificate is not renewed for a third of its
 * lifetime. If the clock is years ahead, every certificate looks old, even a new one. */
static int64_t defer_renewal_of_new_cert(const struct acme_cert_spec *spec, const struct acme_validity *life,
                                         int64_t now, int64_t due)
{
    int64_t made = acme_store_mtime(ACME_CERTIFICATES, spec->name, ".pem");
    int64_t spared = made + (life->to - life->from) / 3;
    return due <= now && made <= now && spared > now ? spared : due;
}

/* Certificates that live for less than ten days are renewed after half of their lifetime at the latest, so that there is
 * time for several attempts. */
static int64_t regular_renewal_time(const struct acme_job *plan, const struct acme_validity *life)
{
    int64_t whole = life->to - life->from, percent = plan->renew_percent;
    if (whole < SHORT_S && percent > 50)
        percent = 50;
    return life->from + whole * percent / 100;
}

int64_t acme_order_renewal_time(const struct acme_job *plan, const struct acme_cert_spec *spec, int64_t now,
                                struct acme_error *f)
{
    struct mk_buf text;
    struct acme_validity life = {0};
    struct acme_renewal suggested = {0};
    char id[ACME_CERT_ID_MAX];
    *f = (struct acme_error){0};
    int e = acme_store_read(ACME_CERTIFICATES, spec->name, ".pem", &text);
    if (e && e != -ENOENT)
        acme_error_set(f, "cannot read the certificate file: %s", strerror(-e));
    bool ok = !e && check_installed_cert(mk_buf_str(&text), plan, spec, &life, f);
    if (ok)
        acme_cert_id(mk_buf_str(&text), id);
    mk_buf_free(&text);
    if (!ok)
        return 0;
    int64_t due = defer_renewal_of_new_cert(spec, &life, now, regular_renewal_time(plan, &life));
    (void)acme_renewal_load(&suggested, spec, id);
    return acme_renewal_adjust(&suggested, &life, acme_store_mtime(ACME_CERTIFICATES, spec->name, ".pem"),
                               now, due);
}

int64_t acme_order_expiry(const struct acme_cert_spec *spec)
{
    struct mk_buf text;
    struct acme_validity life = {0};
    if (acme_store_read(ACME_CERTIFICATES, spec->name, ".pem", &text))
        return 0;
    acme_cert_validity(mk_buf_str(&text), &life);
    mk_buf_free(&text);
    return life.to;
}

void acme_order_cert_id(const struct acme_cert_spec *spec, char id[ACME_CERT_ID_MAX])
{
    struct mk_buf text;
    id[0] = '\0';
    if (acme_store_read(ACME_CERTIFICATES, spec->name, ".pem", &text) == 0)
        acme_cert_id(mk_buf_str(&text), id);
    mk_buf_free(&text);
}
