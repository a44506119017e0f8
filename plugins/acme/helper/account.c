/* SPDX-License-Identifier: Apache-2.0 */
#include "account.h"

#include <errno.h>
#include <monkey/json.h>
#include <unistd.h>

#include "jws.h"
#include "store.h"

enum { TEXT_MAX = 64 * 1024 };

/* ---- Key ---- */

static EVP_PKEY *create_account_key(struct acme_error *f)
{
    struct mk_buf pem = mk_buf_growing(TEXT_MAX);
    EVP_PKEY *key = acme_key_new("ecdsa");
    bool ok = key && acme_key_write_pem(key, &pem);
    if (!ok)
        acme_error_set_global(f, "cannot create a key for the account: %s", acme_key_error());
    else
        ok = acme_store_write("", ACME_ACCOUNT_KEY, "", mk_buf_str(&pem), f);
    mk_buf_free(&pem);
    if (ok)
        return key;
    EVP_PKEY_free(key);
    return NULL;
}

/* Loads the account's key, or creates one if there is none. Does not replace a damaged key, because its owner
 * may have a backup. */
static EVP_PKEY *load_or_create_key(struct acme_error *f)
{
    struct mk_buf pem;
    int e = acme_store_read("", ACME_ACCOUNT_KEY, "", &pem);
    if (e == -ENOENT)
        return create_account_key(f);
    EVP_PKEY *key = e ? NULL : acme_key_read_pem(mk_buf_str(&pem));
    mk_buf_free(&pem);
    if (key && acme_key_has_type(key, "ecdsa"))
        return key;
    EVP_PKEY_free(key);
    if (e)
        acme_error_set_global(f, "%s cannot be read: %s", ACME_ACCOUNT_KEY, strerror(-e));
    else
        acme_error_set_global(
            f,
            "%s is damaged: no P-256 key found; restore a backup, or remove the file to create a new account",
            ACME_ACCOUNT_KEY);
    return NULL;
}

/* ---- Saved state ---- */

static json_t *read_saved_account(void)
{
    struct mk_buf text;
    int e = acme_store_read("", ACME_ACCOUNT, "", &text);
    json_t *o = e ? NULL : json_loadb(text.p ? text.p : "", text.len, 0, NULL);
    if (!e && !json_is_object(o))
        acme_report_log(MK_LOG_WARN, "%s is damaged; requesting the account data from the authority",
                        ACME_ACCOUNT);
    mk_buf_free(&text);
    return o;
}

static bool same_contact(const json_t *account, const json_t *expected)
{
    const json_t *old = json_object_get(account, "contact");
    return json_equal(old, expected);
}

/* Sets the URL if the account belongs to that key and directory. Returns true if its contact is also
 * current. */
static bool load_account(struct acme_client *c)
{
    json_t *o = read_saved_account();
    const char *url = acme_json_string(o, "url"), *directory = acme_json_string(o, "directory"),
               *key = acme_json_string(o, "key");
    char buf[256];
    struct mk_buf ours = mk_buf_fixed(buf, sizeof buf - 1);
    bool same = acme_http_is_url(url) && directory && key && strcmp(directory, c->plan->directory) == 0 &&
                acme_jws_key_authorization(&ours, c->key, "") &&
                mk_str_eq(mk_buf_str(&ours), mk_str_from_c(key));
    if (same)
        memcpy(c->account, url, strlen(url) + 1);
    same = same && same_contact(o, c->plan->contact);
    json_decref(o);
    return same;
}

static void write_contact(struct mk_json_writer *w, const struct acme_job *plan)
{
    const json_t *each;
    size_t i;
    mk_json_begin_array(mk_json_key(w, "contact"));
    json_array_foreach(plan->contact, i, each) mk_json_cstr(w, json_string_value(each));
    mk_json_end_array(w);
}

static bool save_account(const struct acme_client *c, struct acme_error *f)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    struct mk_json_writer w = mk_json_writer_to(&text);
    mk_json_begin_object(&w);
    mk_json_cstr(mk_json_key(&w, "directory"), c->plan->directory);
    mk_json_cstr(mk_json_key(&w, "url"), c->account);
    mk_json_begin_string(mk_json_key(&w, "key"));
    acme_jws_key_authorization(&text, c->key, "");
    mk_json_end_string(&w);
    write_contact(&w, c->plan);
    mk_json_end_object(&w);
    mk_buf_add_char(&text, '\n');
    bool ok = !text.failed ? acme_store_write("", ACME_ACCOUNT, "", mk_buf_str(&text), f)
                           : acme_error_set_global(f, "no memory");
    mk_buf_free(&text);
    return ok;
}

/* ---- Request ---- */

static bool write_external_binding(struct mk_json_writer *w, const struct acme_client *c,
                                   struct acme_error *f)
{
    const struct acme_job *p = c->plan;
    char buf[512];
    struct mk_buf secret = mk_buf_fixed(buf, sizeof buf);
    if (!p->eab_id)
        return !c->wants_binding ||
               acme_error_set_global(f, "the authority requires external account binding: set "
                                        "ExternalAccount in [ACME] to the values from the authority");
    mk_json_key(w, "externalAccountBinding");
    if (acme_base64url_decode(&secret, mk_str_from_c(p->eab_key)) &&
        acme_jws_write_eab(w, c->key, p->eab_id, mk_buf_str(&secret), c->new_account))
        return true;
    return acme_error_set_global(
        f, "the key of ExternalAccount is invalid: expected the base64url text from the authority");
}

static bool register_account(struct acme_client *c, struct acme_error *f)
{
    struct mk_buf payload = mk_buf_growing(TEXT_MAX);
    struct acme_response r = {0};
    struct mk_json_writer w = mk_json_writer_to(&payload);
    mk_json_begin_object(&w);
    mk_json_bool(mk_json_key(&w, "termsOfServiceAgreed"), true);
    write_contact(&w, c->plan);
    bool ok = write_external_binding(&w, c, f);
    mk_json_end_object(&w);
    if (ok && payload.failed)
        ok = acme_error_set_global(f, "no memory");
    ok = ok && acme_client_post(c, c->new_account, mk_buf_str(&payload), &r, f);
    mk_buf_free(&payload);
    if (ok && !acme_http_is_url(r.location))
        ok = acme_error_set_global(f, "the response of %s contains no account URL", c->new_account);
    if (ok) {
        memcpy(c->account, r.location, sizeof c->account);
        acme_report_log(MK_LOG_INFO, "%s account %s%s%s", r.status == 201 ? "new" : "known", c->account,
                        c->terms[0] ? ", terms of service: " : "", c->terms);
    }
    acme_response_free(&r);
    return ok && save_account(c, f);
}

static bool update_contact(struct acme_client *c, struct acme_error *f)
{
    struct mk_buf payload = mk_buf_growing(TEXT_MAX);
    struct acme_response r = {0};
    struct mk_json_writer w = mk_json_writer_to(&payload);
    mk_json_begin_object(&w);
    write_contact(&w, c->plan);
    mk_json_end_object(&w);
    bool ok = !payload.failed && acme_client_post(c, c->account, mk_buf_str(&payload), &r, f);
    mk_buf_free(&payload);
    acme_response_free(&r);
    return ok && save_account(c, f);
}

static bool open_account(struct acme_client *c, struct acme_error *f)
{
    c->key = load_or_create_key(f);
    bool ok = c->key && (load_account(c) || (c->account[0] ? update_contact(c, f) : register_account(c, f)));
    if (!ok && c->account[0] && strcmp(f->type, "accountDoesNotExist") == 0) {
        acme_account_delete_saved(c);
        ok = register_account(c, f);
    }
    f->affects_all = true;
    return ok;
}

bool acme_account_open(struct acme_client *c, struct acme_error *f)
{
    int lock = acme_store_lock_account();
    bool ok = open_account(c, f);
    if (lock >= 0)
        close(lock);
    return ok;
}

void acme_account_delete_saved(struct acme_client *c)
{
    acme_report_log(MK_LOG_WARN, "the account %s no longer exists at the authority", c->account);
    c->account[0] = '\0';
    acme_store_remove("", ACME_ACCOUNT, "");
}
