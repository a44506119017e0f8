/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/inventory.h"

#include <arpa/inet.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "monkey/text.h"
#include "tls/conn_info.h"
#include "tls/context.h"
#include "tls/file.h"
#include "tls/inventory_gauges.h"
#include "tls/inventory_state.h"

enum {
    DAY_S = 86400,
    WARN_DAYS = 14,
    DATE_MAX = 32,
    KEY_TYPE_MAX = 48,
    NAMES_SHOWN = 40,
    NAME_SHOWN = 100,
    ISSUER_SHOWN = 24,
    TEXT_SHOWN = 600,
};

struct certificate {
    const struct mk_tls_inventory_entry *entry;
    X509 *leaf;              /* NULL: it cannot be read */
    int64_t begins, expires; /* period in which it and its chain are valid */
    bool is_pending;         /* a plugin has not obtained it yet */
    bool is_unusable;
    struct mk_tls_settings_error problem; /* an error if the certificate is unusable, else a warning */
    struct mk_tls_inventory_state state;
};

struct inventory {
    struct certificate *at;
    size_t n;
    const struct mk_tls_inventory_settings *settings;
    int64_t now;
    struct mk_buf *out;
};

/* ---- Reading ---- */

static int64_t seconds_of(const ASN1_TIME *t)
{
    struct tm tm;
    return ASN1_TIME_to_tm(t, &tm) ? (int64_t)timegm(&tm) : 0;
}

/* Reads the certificate of a pair that the server cannot use, to list its names nevertheless. */
static X509 *read_leaf(const struct mk_tls_keypair *pair)
{
    struct mk_tls_settings_error ignored = {0};
    BIO *b;
    X509 *leaf = NULL;
    if (!mk_tls_file_read_to_bio(pair->certificate, pair->from_plugin, "certificate", &b, &ignored)) {
        leaf = PEM_read_bio_X509_AUX(b, NULL, mk_tls_file_refuse_password_cb, NULL);
        BIO_free(b);
    }
    ERR_clear_error();
    return leaf;
}

static bool is_missing(const char *file)
{
    struct stat st;
    return lstat(file, &st) < 0 && errno == ENOENT;
}

/* Loads the pair as the server does, so that the list has the same errors. */
static void read_certificate(struct certificate *c, const struct mk_tls_inventory_entry *entry)
{
    const struct mk_tls_server_settings rules = {.pairs = &entry->pair, .n_pairs = 1, .oldest = 12};
    struct mk_tls_context *context;
    *c = (struct certificate){.entry = entry};
    if (entry->pair.from_plugin)
        mk_tls_inventory_state_read(entry->pair.certificate, &c->state);
    c->is_pending = entry->pair.from_plugin && is_missing(entry->pair.certificate);
    if (c->is_pending)
        return;
    c->is_unusable = mk_tls_context_new(&rules, &context, &c->problem) != 0;
    if (!c->is_unusable) {
        c->leaf = context->sources[0].leaf;
        X509_up_ref(c->leaf);
        c->begins = mk_tls_context_valid_from(context);
        c->expires = mk_tls_context_valid_until(context);
        mk_tls_context_free(context);
    } else if ((c->leaf = read_leaf(&entry->pair))) {
        c->begins = seconds_of(X509_get0_notBefore(c->leaf));
        c->expires = seconds_of(X509_get0_notAfter(c->leaf));
    }
}

static int compare_expiry(const void *x, const void *y)
{
    const struct certificate *a = x, *b = y;
    if (a->expires != b->expires)
        return a->expires < b->expires ? -1 : 1;
    return strcmp(a->entry->pair.certificate, b->entry->pair.certificate);
}

static bool expires_soon(const struct inventory *v, const struct certificate *c)
{
    int64_t limit = (int64_t)WARN_DAYS * DAY_S, third = (c->expires - c->begins) / 3;
    if (v->settings->has_days)
        limit = (int64_t)v->settings->days * DAY_S;
    else if (third < limit)
        limit = third;
    return c->leaf && c->expires - v->now <= limit;
}

static bool needs_attention(const struct inventory *v, const struct certificate *c)
{
    return c->is_unusable || c->begins > v->now || expires_soon(v, c) || c->state.reason[0] ||
           c->state.damaged;
}

/* ---- Duplicates ---- */

static int compare_paths(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static int compare_files(const void *x, const void *y)
{
    const struct mk_tls_keypair *a = &((const struct certificate *)x)->entry->pair,
                                *b = &((const struct certificate *)y)->entry->pair;
    int c = compare_paths(a->certificate, b->certificate);
    if (!c)
        c = compare_paths(a->key, b->key);
    return c ? c : compare_paths(a->ocsp, b->ocsp);
}

/* The first entry of a certificate comes first. */
static int compare_files_and_order(const void *x, const void *y)
{
    const struct certificate *a = x, *b = y;
    int c = compare_files(a, b);
    return c ? c : a->entry < b->entry ? -1 : a->entry > b->entry;
}

/* Hosts inherit certificates from [SERVER], and may share files: each is listed once. */
static void remove_duplicates(struct inventory *v)
{
    size_t kept = 0;
    qsort(v->at, v->n, sizeof *v->at, compare_files_and_order);
    for (size_t i = 0; i < v->n; i++)
        if (!kept || compare_files(&v->at[kept - 1], &v->at[i]) != 0)
            v->at[kept++] = v->at[i];
    v->n = kept;
}

/* ---- Properties ---- */

static void format_key_type(const X509 *leaf, char buf[KEY_TYPE_MAX])
{
    EVP_PKEY *key = X509_get0_pubkey(leaf);
    int kind = key ? EVP_PKEY_get_base_id(key) : EVP_PKEY_NONE;
    if (kind == EVP_PKEY_RSA || kind == EVP_PKEY_RSA_PSS)
        (void)snprintf(buf, KEY_TYPE_MAX, "RSA %d", EVP_PKEY_get_bits(key));
    else if (kind == EVP_PKEY_EC)
        (void)snprintf(buf, KEY_TYPE_MAX, "ECDSA P-%d", EVP_PKEY_get_bits(key));
    else
        (void)snprintf(buf, KEY_TYPE_MAX, "%s",
                       kind == EVP_PKEY_ED25519 ? "Ed25519"
                       : kind == EVP_PKEY_ED448 ? "Ed448"
                                                : "unknown");
}

static mk_str general_name_text(const GENERAL_NAME *name, char buf[INET6_ADDRSTRLEN])
{
    int kind;
    const ASN1_STRING *s = GENERAL_NAME_get0_value(name, &kind);
    int len = kind == GEN_DNS || kind == GEN_IPADD ? ASN1_STRING_length(s) : 0;
    const unsigned char *p = len > 0 ? ASN1_STRING_get0_data(s) : NULL;
    if (p && kind == GEN_DNS)
        return mk_str_of((const char *)p, (size_t)len);
    if (p && (len == 4 || len == 16) && inet_ntop(len == 4 ? AF_INET : AF_INET6, p, buf, INET6_ADDRSTRLEN))
        return mk_str_from_c(buf);
    return MK_STR_NULL;
}

/* Calls add() for each name of the certificate or, if it has not been read, of its host. */
static void for_each_name(const struct certificate *c, void (*add)(void *ctx, mk_str name), void *ctx)
{
    char buf[INET6_ADDRSTRLEN];
    GENERAL_NAMES *all = c->leaf ? X509_get_ext_d2i(c->leaf, NID_subject_alt_name, NULL, NULL) : NULL;
    for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
        mk_str name = general_name_text(sk_GENERAL_NAME_value(all, i), buf);
        if (name.len)
            add(ctx, name);
    }
    GENERAL_NAMES_free(all);
    for (size_t i = 0; !c->leaf && i < c->entry->n_hosts; i++)
        add(ctx, c->entry->hosts[i]);
}

/* Returns the common name of the issuer, or else all of its name. */
static void append_issuer(struct mk_buf *out, const X509 *leaf)
{
    char buf[MK_TLS_CONN_INFO_NAME_MAX];
    const X509_NAME *issuer = X509_get_issuer_name(leaf);
    int at = X509_NAME_get_index_by_NID(issuer, NID_commonName, -1);
    const ASN1_STRING *s = at < 0 ? NULL : X509_NAME_ENTRY_get_data(X509_NAME_get_entry(issuer, at));
    unsigned char *utf8 = NULL;
    int len = s ? ASN1_STRING_to_UTF8(&utf8, s) : 0;
    mk_str text =
        len > 0 ? mk_str_of((const char *)utf8, (size_t)len) : mk_tls_conn_info_format_name(issuer, buf);
    mk_log_escape_to(out, text, out->len + ISSUER_SHOWN);
    OPENSSL_free(utf8);
}

/* ---- Text ---- */

static void append_date(struct mk_buf *out, int64_t at)
{
    char date[DATE_MAX];
    time_t t = (time_t)at;
    struct tm tm;
    bool ok = gmtime_r(&t, &tm) && strftime(date, sizeof date, "%Y-%m-%d %H:%M", &tm);
    mk_buf_addf(out, "%s", ok ? date : "?");
}

static void append_time_left(struct mk_buf *out, int64_t left)
{
    if (left <= 0)
        mk_buf_add(out, MK_STR("expired"));
    else if (left < 2 * (int64_t)DAY_S)
        mk_buf_addf(out, "%lld hours", (long long)(left / 3600));
    else
        mk_buf_addf(out, "%lld days", (long long)(left / DAY_S));
}

/* Fills the column that began at `begin`. */
static void end_column(struct mk_buf *out, size_t begin, size_t width)
{
    size_t used = out->len - begin;
    mk_buf_addf(out, "%*s", (int)(used < width ? width - used : 0) + 2, "");
}

struct shown_names {
    struct mk_buf *out;
    size_t begin, omitted;
};

static void append_name(void *ctx, mk_str name)
{
    struct shown_names *shown = ctx;
    bool is_first = shown->out->len == shown->begin;
    if (!is_first && (shown->omitted || shown->out->len - shown->begin + name.len >= NAMES_SHOWN)) {
        shown->omitted++;
        return;
    }
    if (!is_first)
        mk_buf_add_char(shown->out, ' ');
    mk_log_escape_to(shown->out, name, shown->out->len + NAME_SHOWN);
}

static void append_names(struct mk_buf *out, const struct certificate *c)
{
    struct shown_names shown = {.out = out, .begin = out->len};
    for_each_name(c, append_name, &shown);
    if (shown.omitted)
        mk_buf_addf(out, " +%zu", shown.omitted);
    if (out->len == shown.begin)
        mk_buf_add_char(out, '-');
}

static void append_row(const struct inventory *v, const struct certificate *c)
{
    struct mk_buf *out = v->out;
    char key[KEY_TYPE_MAX] = "-";
    size_t begin = out->len;
    if (c->leaf)
        append_date(out, c->expires);
    else
        mk_buf_add_char(out, '-');
    end_column(out, begin, 16);
    begin = out->len;
    if (c->leaf)
        append_time_left(out, c->expires - v->now);
    else
        mk_buf_add(out, mk_str_from_c(!c->is_pending       ? "unusable"
                                      : c->state.reason[0] ? "failed"
                                                           : "pending"));
    end_column(out, begin, 9);
    if (c->leaf)
        format_key_type(c->leaf, key);
    mk_buf_addf(out, "%-11s  ", key);
    begin = out->len;
    if (c->leaf)
        append_issuer(out, c->leaf);
    else
        mk_buf_add_char(out, '-');
    end_column(out, begin, ISSUER_SHOWN);
    begin = out->len;
    append_names(out, c);
    end_column(out, begin, NAMES_SHOWN);
    mk_log_escape(out, mk_str_from_c(c->entry->pair.certificate));
    mk_buf_add_char(out, '\n');
}

/* Messages quote URLs and words. A quotation mark needs no escaping outside of the quoted fields of a log. */
static void append_detail(struct mk_buf *out, const char *what, const char *text)
{
    mk_str rest = mk_str_from_c(text);
    mk_buf_addf(out, "    %s: ", what);
    for (size_t end = out->len + TEXT_SHOWN; out->len < end;) {
        size_t len = mk_str_find(rest, '"');
        mk_log_escape_to(out, mk_str_first(rest, len), end);
        if (len == MK_STR_NONE)
            break;
        mk_buf_add_char(out, '"');
        rest = mk_str_skip(rest, len + 1);
    }
    mk_buf_add_char(out, '\n');
}

static void append_time_detail(struct mk_buf *out, const char *what, int64_t at)
{
    mk_buf_addf(out, "    %s: ", what);
    append_date(out, at);
    mk_buf_add_char(out, '\n');
}

static void append_details(struct mk_buf *out, const struct certificate *c)
{
    const char *file = c->problem.file;
    if (*c->problem.text)
        append_detail(out, c->is_unusable ? "error" : "warning", c->problem.text);
    if (*c->problem.text && file && strcmp(file, c->entry->pair.certificate) != 0)
        append_detail(out, "of", file);
    if (c->entry->pair.ocsp)
        append_detail(out, "OCSP response", c->entry->pair.ocsp);
    if (c->state.renewal)
        append_time_detail(out, "next renewal", c->state.renewal);
    if (c->state.reason[0])
        append_detail(out, "last failure", c->state.reason);
    if (c->state.retry)
        append_time_detail(out, "next attempt", c->state.retry);
    if (c->state.damaged)
        append_detail(out, "damaged state file in", c->state.damaged);
}

static void write_text(const struct inventory *v)
{
    if (!v->n) {
        mk_buf_add(v->out, MK_STR("The configuration has no certificates.\n"));
        return;
    }
    mk_buf_addf(v->out, "%-16s  %-9s  %-11s  %-*s  %-*s  %s\n", "EXPIRES (UTC)", "LEFT", "KEY", ISSUER_SHOWN,
                "ISSUER", NAMES_SHOWN, "NAMES", "FILE");
    for (size_t i = 0; i < v->n; i++) {
        append_row(v, &v->at[i]);
        append_details(v->out, &v->at[i]);
    }
}

/* ---- JSON ---- */

static void write_name(void *w, mk_str name)
{
    mk_json_string(w, name);
}

static void write_file(struct mk_json_writer *w, const char *key, const char *file)
{
    if (file)
        mk_json_cstr(mk_json_key(w, key), file);
    else
        mk_json_null(mk_json_key(w, key));
}

static void write_time(struct mk_json_writer *w, const char *key, int64_t at)
{
    if (at)
        mk_json_int(mk_json_key(w, key), at);
    else
        mk_json_null(mk_json_key(w, key));
}

static void write_leaf(const struct inventory *v, const struct certificate *c, struct mk_json_writer *w)
{
    char key[KEY_TYPE_MAX], buf[MK_TLS_CONN_INFO_NAME_MAX];
    mk_json_string(mk_json_key(w, "issuer"),
                   mk_tls_conn_info_format_name(X509_get_issuer_name(c->leaf), buf));
    write_time(w, "not_before", c->begins);
    write_time(w, "not_after", c->expires);
    int64_t left = c->expires - v->now;
    mk_json_int(mk_json_key(w, "days_left"), left < 0 ? -((-left + DAY_S - 1) / DAY_S) : left / DAY_S);
    format_key_type(c->leaf, key);
    mk_json_cstr(mk_json_key(w, "key_type"), key);
}

static void write_no_leaf(struct mk_json_writer *w)
{
    static const char *const keys[] = {"issuer", "not_before", "not_after", "days_left", "key_type"};
    for (size_t i = 0; i < MK_LEN(keys); i++)
        mk_json_null(mk_json_key(w, keys[i]));
}

static void write_problem(const struct inventory *v, const struct certificate *c, bool is_error,
                          struct mk_json_writer *w)
{
    const char *file = c->problem.file;
    if (v->settings->omits_files && file && strcmp(file, c->entry->pair.certificate) != 0)
        file = NULL;
    mk_json_key(w, is_error ? "error" : "warning");
    if (!*c->problem.text || c->is_unusable != is_error) {
        mk_json_null(w);
        return;
    }
    mk_json_begin_object(w);
    write_file(w, "file", file);
    mk_json_cstr(mk_json_key(w, "text"), c->problem.text);
    mk_json_end_object(w);
}

static void write_renewal(const struct certificate *c, struct mk_json_writer *w)
{
    mk_json_key(w, "renewal");
    if (!c->entry->pair.from_plugin) {
        mk_json_null(w);
        return;
    }
    mk_json_begin_object(w);
    write_time(w, "next", c->state.renewal);
    write_file(w, "last_failure", c->state.reason[0] ? c->state.reason : NULL);
    mk_json_uint(mk_json_key(w, "failures"), c->state.failures);
    write_time(w, "next_attempt", c->state.retry);
    write_file(w, "damaged_state", c->state.damaged);
    mk_json_end_object(w);
}

static void write_certificate(const struct inventory *v, const struct certificate *c,
                              struct mk_json_writer *w)
{
    mk_json_newline(w);
    mk_json_begin_object(w);
    mk_json_begin_array(mk_json_key(w, "names"));
    for_each_name(c, write_name, w);
    mk_json_end_array(w);
    if (c->leaf)
        write_leaf(v, c, w);
    else
        write_no_leaf(w);
    mk_json_cstr(mk_json_key(w, "file"), c->entry->pair.certificate);
    if (!v->settings->omits_files) {
        write_file(w, "key_file", c->entry->pair.key);
        write_file(w, "ocsp_file", c->entry->pair.ocsp);
        write_file(w, "configured_at", c->entry->written_at);
    }
    mk_json_bool(mk_json_key(w, "needs_attention"), needs_attention(v, c));
    write_problem(v, c, true, w);
    write_problem(v, c, false, w);
    write_renewal(c, w);
    mk_json_end_object(w);
}

static void write_array(const struct inventory *v, struct mk_json_writer *w)
{
    const struct mk_tls_inventory_settings *s = v->settings;
    mk_json_begin_array(w);
    for (size_t i = 0; i < v->n; i++) {
        size_t before = v->out->len;
        const struct mk_json_writer writer_before = *w;
        write_certificate(v, &v->at[i], w);
        if (s->max_len && (v->out->failed || v->out->len >= s->max_len)) {
            v->out->len = before;
            v->out->failed = false;
            *w = writer_before;
            *s->n_omitted = v->n - i;
            break;
        }
    }
    mk_json_end_array(w);
}

static void write_json(const struct inventory *v)
{
    struct mk_json_writer w = mk_json_writer_to(v->out);
    if (v->settings->is_array) {
        write_array(v, &w);
        return;
    }
    mk_json_begin_object(&w);
    mk_json_int(mk_json_key(&w, "now"), v->now);
    write_array(v, mk_json_key(&w, "certificates"));
    mk_json_end_object(&w);
    mk_buf_add_char(v->out, '\n');
}

static void set_gauges(const struct inventory *v)
{
    struct mk_tls_inventory_gauges *g =
        mk_tls_inventory_gauges_begin(v->settings->statistics, v->settings->table);
    if (!g)
        return;
    for (size_t i = 0; i < v->n; i++)
        mk_tls_inventory_gauges_keep(g, v->at[i].entry);
    mk_tls_inventory_gauges_hide_others(g);
    for (size_t i = 0; i < v->n; i++) {
        const struct certificate *c = &v->at[i];
        mk_tls_inventory_gauges_set(g, c->entry, c->leaf ? c->expires : 0, c->leaf && !c->is_unusable,
                                    &c->state);
    }
    mk_tls_inventory_gauges_end(g);
}

mk_err mk_tls_inventory_write(const struct mk_tls_inventory_entry *entries, size_t n,
                              const struct mk_tls_inventory_settings *settings, struct mk_buf *out,
                              bool *has_problem)
{
    struct inventory v = {.at = mk_mem_alloc((n ? n : 1) * sizeof *v.at),
                          .n = n,
                          .settings = settings,
                          .now = (int64_t)time(NULL),
                          .out = out};
    if (!v.at)
        return -ENOMEM;
    *has_problem = false;
    for (size_t i = 0; i < n; i++)
        v.at[i].entry = &entries[i];
    remove_duplicates(&v);
    for (size_t i = 0; i < v.n; i++) {
        read_certificate(&v.at[i], v.at[i].entry);
        *has_problem |= needs_attention(&v, &v.at[i]);
    }
    qsort(v.at, v.n, sizeof *v.at, compare_expiry);
    if (settings->json)
        write_json(&v);
    else
        write_text(&v);
    if (settings->table)
        set_gauges(&v);
    for (size_t i = 0; i < v.n; i++)
        X509_free(v.at[i].leaf);
    mk_mem_free(v.at);
    return out->failed ? -ENOMEM : 0;
}
