/* SPDX-License-Identifier: Apache-2.0 */
#include "order.h"

#include <errno.h>
#include <monkey/text.h>

#include "challenge.h"
#include "jws.h"
#include "store.h"

enum { TEXT_MAX = 1 << 20 };

struct order {
    struct acme_client *client;
    const struct acme_wish *wish;
    EVP_PKEY *key; /* of the certificate */
    char url[ACME_URL_MAX];
    json_t *object;        /* the last one that the authority sent */
    struct acme_life life; /* of the certificate */
    uint64_t retry_s;      /* pause before the next request, as the authority demands */
};

/* ---- Saved state ---- */

static void add_names(struct mk_buf *out, const struct acme_wish *wish)
{
    mk_buf_add_char(out, '[');
    for (size_t i = 0; i < wish->n_names; i++) {
        mk_buf_add(out, i ? MK_STR(",") : MK_STR(""));
        mk_buf_add(out, MK_STR("{\"type\":\"dns\",\"value\":"));
        mk_json_string(out, mk_str_from_c(wish->names[i]));
        mk_buf_add_char(out, '}');
    }
    mk_buf_add_char(out, ']');
}

static bool keep(const struct order *o, struct acme_fault *f)
{
    struct mk_buf pem = mk_buf_growing(TEXT_MAX), text = mk_buf_growing(TEXT_MAX);
    mk_buf_add(&text, MK_STR("{\"url\":"));
    mk_json_string(&text, mk_str_from_c(o->url));
    mk_buf_add(&text, MK_STR(",\"account\":"));
    mk_json_string(&text, mk_str_from_c(o->client->account));
    mk_buf_add(&text, MK_STR(",\"identifiers\":"));
    add_names(&text, o->wish);
    mk_buf_add(&text, MK_STR("}\n"));
    bool ok = acme_key_write(o->key, &pem) && !text.failed;
    if (!ok)
        acme_fault(f, "no memory");
    ok = ok && acme_store_write(ACME_ORDERS, o->wish->name, ".key", mk_buf_str(&pem), f) &&
         acme_store_write(ACME_ORDERS, o->wish->name, ".json", mk_buf_str(&text), f);
    mk_buf_free(&pem);
    mk_buf_free(&text);
    return ok;
}

static void forget(const struct order *o)
{
    acme_store_remove(ACME_ORDERS, o->wish->name, ".json");
    acme_store_remove(ACME_ORDERS, o->wish->name, ".key");
}

static json_t *names_of(const struct acme_wish *wish)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    add_names(&text, wish);
    json_t *list = json_loadb(text.p ? text.p : "", text.len, 0, NULL);
    mk_buf_free(&text);
    return list;
}

static bool is_for(const json_t *kept, const struct order *o)
{
    json_t *names = names_of(o->wish);
    const char *account = acme_json_text(kept, "account");
    bool ok = account && strcmp(account, o->client->account) == 0 &&
              json_equal(names, json_object_get(kept, "identifiers"));
    json_decref(names);
    return ok;
}

static bool recall_key(struct order *o)
{
    struct mk_buf text;
    int e = acme_store_read(ACME_ORDERS, o->wish->name, ".key", &text);
    o->key = e ? NULL : acme_key_read(mk_buf_str(&text));
    mk_buf_free(&text);
    if (o->key && acme_key_is(o->key, o->wish->key))
        return true;
    EVP_PKEY_free(o->key);
    o->key = NULL;
    return false;
}

/* An unfinished order for the same names. */
static bool recall(struct order *o)
{
    struct mk_buf text;
    int e = acme_store_read(ACME_ORDERS, o->wish->name, ".json", &text);
    json_t *kept = e ? NULL : json_loadb(text.p ? text.p : "", text.len, 0, NULL);
    const char *url = acme_json_text(kept, "url");
    mk_buf_free(&text);
    bool ok = acme_net_is_url(url) && is_for(kept, o) && recall_key(o);
    if (ok)
        memcpy(o->url, url, strlen(url) + 1);
    json_decref(kept);
    return ok;
}

/* ---- Requests ---- */

static bool adopt(struct order *o, json_t *object, const struct acme_reply *r)
{
    if (!object)
        return false;
    json_decref(o->object);
    o->object = object;
    o->retry_s = r->retry_s;
    return true;
}

static bool ask(struct order *o, const char *url, mk_str payload, struct acme_fault *f)
{
    struct acme_reply r;
    bool ok = adopt(o, acme_client_post_json(o->client, url, payload, &r, f), &r);
    acme_reply_free(&r);
    return ok;
}

static bool is(const struct order *o, const char *status)
{
    const char *its = acme_json_text(o->object, "status");
    return its && strcmp(its, status) == 0;
}

static bool begin(struct order *o, struct acme_fault *f)
{
    struct mk_buf payload = mk_buf_growing(TEXT_MAX);
    struct acme_reply r = {0};
    o->key = acme_key_new(o->wish->key);
    if (!o->key)
        return acme_fault(f, "cannot create a key: %s", acme_key_error());
    mk_buf_add(&payload, MK_STR("{\"identifiers\":"));
    add_names(&payload, o->wish);
    mk_buf_add_char(&payload, '}');
    bool ok =
        payload.failed
            ? acme_fault(f, "no memory")
            : adopt(o, acme_client_post_json(o->client, o->client->new_order, mk_buf_str(&payload), &r, f),
                    &r);
    mk_buf_free(&payload);
    if (ok && !acme_net_is_url(r.location))
        ok = acme_fault(f, "the authority names no order");
    if (ok)
        memcpy(o->url, r.location, sizeof o->url);
    acme_reply_free(&r);
    return ok && keep(o, f);
}

/* Continues a saved order, or starts one. */
static bool open_order(struct order *o, struct acme_fault *f)
{
    struct acme_fault old = {0};
    if (recall(o)) {
        if (ask(o, o->url, MK_STR(""), &old) && !is(o, "invalid"))
            return true;
        if (old.text[0] && (!old.status || old.status >= 500)) { /* the authority may allow it later */
            *f = old;
            return false;
        }
        EVP_PKEY_free(o->key);
        o->key = NULL;
        o->url[0] = '\0';
    }
    forget(o);
    return begin(o, f);
}

/* ---- Steps ---- */

static bool authorize(struct order *o, struct acme_fault *f)
{
    const json_t *list = json_object_get(o->object, "authorizations"), *each;
    size_t i;
    json_array_foreach(
        list, i, each) if (!acme_challenge_pass(o->client, json_string_value(each), o->wish, f)) return false;
    return ask(o, o->url, MK_STR(""), f);
}

static bool finalize(struct order *o, struct acme_fault *f)
{
    struct mk_buf der = mk_buf_growing(TEXT_MAX), payload = mk_buf_growing(TEXT_MAX);
    const char *url = acme_json_text(o->object, "finalize");
    bool ok = acme_cert_request(&der, o->key, o->wish);
    mk_buf_add(&payload, MK_STR("{\"csr\":\""));
    acme_base64url(&payload, mk_buf_str(&der));
    mk_buf_add(&payload, MK_STR("\"}"));
    if (!ok || payload.failed)
        ok = acme_fault(f, "cannot create the signing request: %s", acme_key_error());
    else
        ok = ask(o, url, mk_buf_str(&payload), f);
    mk_buf_free(&der);
    mk_buf_free(&payload);
    return ok;
}

static bool describe_failure(const struct order *o, struct acme_fault *f)
{
    const char *status = acme_json_text(o->object, "status");
    const json_t *error = json_object_get(o->object, "error");
    if (is(o, "invalid"))
        acme_client_problem(error, "the order has failed", f);
    else
        acme_fault(f, "the order has an unknown state: `%.50s`", status ? status : "");
    return false;
}

/* From any state to `valid`. */
static bool advance(struct order *o, struct acme_fault *f)
{
    struct acme_patience patience = acme_patience_new();
    bool is_authorized = false, is_final = false;
    while (!is(o, "valid")) {
        bool first = is(o, "pending") ? !is_authorized : is(o, "ready") && !is_final;
        if (is(o, "pending") && first) {
            is_authorized = true;
            if (!authorize(o, f))
                return false;
        } else if (is(o, "ready") && first) {
            is_final = true;
            if (!finalize(o, f))
                return false;
        } else if (!is(o, "pending") && !is(o, "ready") && !is(o, "processing")) {
            return describe_failure(o, f);
        } else if (!acme_patience_wait(&patience, o->retry_s)) {
            return acme_fault(f, "the authority does not finish the order");
        } else if (!ask(o, o->url, MK_STR(""), f)) {
            return false;
        }
    }
    return true;
}

/* ---- The certificate ---- */

static bool install(struct order *o, mk_str chain, struct acme_fault *f)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX + 65536);
    if (!acme_cert_check(chain, o->key, o->wish, &o->life, f))
        return false;
    mk_buf_addf(&text, "Created by monkey, which will replace it.\nDirectory: %s\n",
                o->client->plan->directory);
    mk_buf_add(&text, chain);
    mk_buf_add(&text, MK_STR("\n"));
    bool ok = acme_key_write(o->key, &text) || acme_fault(f, "no memory");
    ok = ok && acme_store_write(ACME_CERTIFICATES, o->wish->name, ".pem", mk_buf_str(&text), f);
    mk_buf_free(&text);
    return ok;
}

static bool fetch(struct order *o, struct acme_fault *f)
{
    const char *url = acme_json_text(o->object, "certificate");
    struct acme_reply r;
    bool ok = acme_client_post(o->client, url, MK_STR(""), &r, f) && install(o, mk_buf_str(&r.body), f);
    acme_reply_free(&r);
    return ok;
}

bool acme_order_fulfil(struct acme_client *c, const struct acme_wish *wish, struct acme_fault *f)
{
    struct order o = {.client = c, .wish = wish};
    bool ok = open_order(&o, f) && advance(&o, f) && fetch(&o, f);
    if (ok || !f->is_everyone) { /* the order is useless now */
        forget(&o);
        acme_challenge_clean(c);
    }
    if (ok)
        acme_say(MK_LOG_INFO, "%s: there is a new certificate, good for %lld hours", wish->name,
                 (long long)(o.life.to - o.life.from) / 3600);
    json_decref(o.object);
    EVP_PKEY_free(o.key);
    return ok;
}

/* ---- Renewal ---- */

static bool is_from(mk_str text, const char *directory)
{
    mk_str line = MK_STR("");
    while (text.p && !mk_str_starts(line, MK_STR("Directory: ")))
        line = mk_str_cut(&text, '\n');
    return mk_str_eq(mk_str_skip(line, 11), mk_str_from_c(directory));
}

static bool look(mk_str text, const struct acme_plan *plan, const struct acme_wish *wish,
                 struct acme_life *life, struct acme_fault *f)
{
    EVP_PKEY *key = acme_key_read(text);
    bool ok = false;
    if (!key)
        acme_fault(f, "the file of the certificate is damaged: it contains no key");
    else if (!acme_key_is(key, wish->key))
        acme_fault(f, "its key has another type than configured");
    else if (!is_from(text, plan->directory))
        acme_fault(f, "its certificate comes from another authority");
    else
        ok = acme_cert_check(text, key, wish, life, f);
    EVP_PKEY_free(key);
    return ok;
}

/* With a clock that is years ahead, every certificate looks old. So new ones are not renewed for a while. */
static int64_t spare_new(const struct acme_wish *wish, const struct acme_life *life, int64_t now, int64_t due)
{
    int64_t made = acme_store_time(ACME_CERTIFICATES, wish->name, ".pem");
    int64_t spared = made + (life->to - life->from) / 3;
    return due <= now && made <= now && spared > now ? spared : due;
}

int64_t acme_order_due(const struct acme_plan *plan, const struct acme_wish *wish, int64_t now,
                       struct acme_fault *f)
{
    struct mk_buf text;
    struct acme_life life = {0};
    *f = (struct acme_fault){0};
    int e = acme_store_read(ACME_CERTIFICATES, wish->name, ".pem", &text);
    if (e && e != -ENOENT)
        acme_fault(f, "cannot read the file of the certificate: %s", strerror(-e));
    bool ok = !e && look(mk_buf_str(&text), plan, wish, &life, f);
    mk_buf_free(&text);
    if (!ok)
        return 0;
    int64_t due = life.from + (life.to - life.from) * (int64_t)plan->renew_percent / 100;
    return spare_new(wish, &life, now, due);
}
