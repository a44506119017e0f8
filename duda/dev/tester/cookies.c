/* SPDX-License-Identifier: Apache-2.0 */
/* The cookie jar of a test, for one host. Domain, Secure and SameSite have no effect. */
#include "test_type.h"

#include <monkey/text.h>
#include <time.h>

enum { COOKIE_MAX = 16 * 1024 };

/* ---- Storing ---- */

static void free_cookie(struct tester_cookie *c)
{
    mk_buf_free(&c->name);
    mk_buf_free(&c->value);
    mk_buf_free(&c->path);
}

void tester_cookies_free(struct duda_test *t)
{
    while (t->n_cookies)
        free_cookie(&t->cookies[--t->n_cookies]);
}

static struct tester_cookie *find_cookie(struct duda_test *t, mk_str name, mk_str path)
{
    for (size_t i = 0; i < t->n_cookies; i++) {
        struct tester_cookie *c = &t->cookies[i];
        if (mk_str_eq(mk_buf_str(&c->name), name) && (!path.p || mk_str_eq(mk_buf_str(&c->path), path)))
            return c;
    }
    return NULL;
}

static void remove_cookie(struct duda_test *t, struct tester_cookie *c)
{
    free_cookie(c);
    *c = t->cookies[--t->n_cookies];
}

static void set_cookie(struct duda_test *t, mk_str name, mk_str value, mk_str path, int64_t expires)
{
    struct tester_cookie *c = find_cookie(t, name, path);
    if (c && expires && expires <= (int64_t)time(NULL)) {
        remove_cookie(t, c);
        return;
    }
    if ((expires && expires <= (int64_t)time(NULL)) || (!c && t->n_cookies == TESTER_COOKIES_MAX))
        return;
    if (!c) {
        c = &t->cookies[t->n_cookies++];
        *c = (struct tester_cookie){mk_buf_growing(COOKIE_MAX), mk_buf_growing(COOKIE_MAX),
                                    mk_buf_growing(COOKIE_MAX), 0};
        mk_buf_add(&c->name, name);
        mk_buf_add(&c->path, path);
    }
    mk_buf_clear(&c->value);
    mk_buf_add(&c->value, value);
    c->expires = expires;
}

/* Returns the folder of the target's path, which is the default of the attribute Path. */
static mk_str default_path(const char *target)
{
    mk_str path = mk_str_from_c(target);
    path = mk_str_first(path, mk_str_find(path, '?'));
    size_t slash = mk_str_find_last(path, '/');
    return slash == MK_STR_NONE || slash == 0 ? MK_STR("/") : mk_str_first(path, slash);
}

static void store_cookie_line(struct duda_test *t, mk_str line, const char *target)
{
    mk_str pair = mk_str_trim(mk_str_cut(&line, ';')), path = default_path(target);
    mk_str name = mk_str_trim(mk_str_cut(&pair, '=')), value = mk_str_trim(pair);
    int64_t now = (int64_t)time(NULL), expires = 0, date;
    uint64_t age;
    bool has_age = false;
    while (line.len) {
        mk_str attribute = mk_str_trim(mk_str_cut(&line, ';')),
               key = mk_str_trim(mk_str_cut(&attribute, '='));
        attribute = mk_str_trim(attribute);
        if (mk_str_eq_nocase(key, MK_STR("Path")) && attribute.len && attribute.p[0] == '/')
            path = attribute;
        else if (mk_str_eq_nocase(key, MK_STR("Max-Age")) && (has_age = true))
            expires = mk_num_parse(attribute, &age) && age ? now + (int64_t)age : 1;
        else if (mk_str_eq_nocase(key, MK_STR("Expires")) && !has_age && mk_date_parse(attribute, now, &date))
            expires = date > 0 ? date : 1;
    }
    set_cookie(t, name, value.p ? value : MK_STR(""), path, expires);
}

void tester_store_cookies(struct duda_test *t, mk_str headers, const char *target)
{
    while (headers.len) {
        mk_str line = mk_str_cut(&headers, '\n');
        line = mk_str_first(line, mk_str_find(line, '\r'));
        mk_str name = mk_str_cut(&line, ':');
        if (mk_str_eq_nocase(name, MK_STR("Set-Cookie")))
            store_cookie_line(t, mk_str_trim(line), target);
    }
}

/* ---- Sending ---- */

static bool path_matches(mk_str path, mk_str target)
{
    target = mk_str_first(target, mk_str_find(target, '?'));
    return mk_str_starts(target, path) &&
           (target.len == path.len || path.p[path.len - 1] == '/' || target.p[path.len] == '/');
}

static bool has_cookie_header(const char *headers)
{
    return tester_find_header(mk_str_from_c(headers), MK_STR("Cookie")).p;
}

void tester_write_headers(struct duda_test *t, const struct duda_test_request *request, struct mk_buf *out)
{
    bool any = false;
    mk_buf_add(out, mk_str_from_c(request->headers));
    if (out->len && out->p[out->len - 1] != '\n')
        mk_buf_add(out, MK_STR("\r\n"));
    for (size_t i = 0; i < t->n_cookies && !has_cookie_header(request->headers);) {
        struct tester_cookie *c = &t->cookies[i];
        if (c->expires && c->expires <= (int64_t)time(NULL)) {
            remove_cookie(t, c);
            continue;
        }
        i++;
        if (!path_matches(mk_buf_str(&c->path), mk_str_from_c(request->target)))
            continue;
        mk_buf_addf(out, "%s%.*s=%.*s", any ? "; " : "Cookie: ", MK_STR_ARG(mk_buf_str(&c->name)),
                    MK_STR_ARG(mk_buf_str(&c->value)));
        any = true;
    }
    if (any)
        mk_buf_add(out, MK_STR("\r\n"));
}

/* ---- Access ---- */

mk_str duda_test_cookie(struct duda_test *t, const char *name)
{
    const struct tester_cookie *c = find_cookie(t, mk_str_from_c(name), MK_STR_NULL);
    return c ? tester_keep(t, c->value.p ? mk_buf_str(&c->value) : MK_STR("")) : MK_STR_NULL;
}

void duda_test_set_cookie(struct duda_test *t, const char *name, const char *value)
{
    struct tester_cookie *c = find_cookie(t, mk_str_from_c(name), MK_STR_NULL);
    if (c)
        remove_cookie(t, c);
    if (value)
        set_cookie(t, mk_str_from_c(name), mk_str_from_c(value), MK_STR("/"), 0);
}

void duda_test_clear_cookies(struct duda_test *t)
{
    tester_cookies_free(t);
}
