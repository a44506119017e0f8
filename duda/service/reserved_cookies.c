/* SPDX-License-Identifier: Apache-2.0 */
#include "service/reserved_cookies.h"

#include <errno.h>

#include "service/suspend.h"

static const char *const ends[] = {
    [DUDA_COOKIE_SESSION] = "-session",
    [DUDA_COOKIE_CSRF] = "-token",
};

bool duda_request_is_tls(struct duda_ctx *d)
{
    return d->request && mk_str_eq(mk_request_scheme(d->request), MK_STR("https"));
}

const char *duda_reserved_cookie_name(struct duda_ctx *d, enum duda_reserved_cookie cookie,
                                      struct duda_cookie_name *buf)
{
    struct mk_buf name = mk_buf_fixed(buf->text, sizeof buf->text - 1);
    if (duda_request_is_tls(d))
        mk_buf_add(&name, MK_STR("__Host-"));
    mk_buf_add(&name, duda_scope(d));
    mk_buf_add(&name, mk_str_from_c(ends[cookie]));
    buf->text[name.len] = '\0';
    return buf->text;
}

/* ---- Names reserved for Duda ---- */

/* Browsers and servers disagree on whether cookie names are case-sensitive. */
static bool skip_prefix_nocase(mk_str *name, mk_str prefix)
{
    bool has = name->len >= prefix.len && mk_str_eq_nocase(mk_str_first(*name, prefix.len), prefix);
    if (has)
        *name = mk_str_skip(*name, prefix.len);
    return has;
}

static bool is_service_scope(const struct duda_worker_ctx *worker_ctx, mk_str scope)
{
    size_t i = 0;
    while (i < worker_ctx->n_scopes && !mk_str_eq_nocase(worker_ctx->scopes[i], scope))
        i++;
    return i < worker_ctx->n_scopes;
}

static bool is_reserved_name(const struct duda_worker_ctx *worker_ctx, mk_str name)
{
    while (skip_prefix_nocase(&name, MK_STR("__Host-")) || skip_prefix_nocase(&name, MK_STR("__Secure-")))
        continue;
    for (size_t i = 0; i < MK_LEN(ends); i++) {
        mk_str end = mk_str_from_c(ends[i]);
        if (name.len > end.len && mk_str_eq_nocase(mk_str_skip(name, name.len - end.len), end) &&
            is_service_scope(worker_ctx, mk_str_first(name, name.len - end.len)))
            return true;
    }
    return false;
}

int duda_reserved_cookie_check(struct duda_ctx *d, mk_str name)
{
    if (!is_reserved_name(d->worker_ctx, name))
        return 0;
    duda_log_handler(d, MK_LOG_WARN,
                     "the service must not set the cookie `%.*s`: Duda uses it for sessions or CSRF tokens",
                     MK_STR_ARG(name));
    return -EPERM;
}

/* Without a name, the whole string is the value and is sent as is: "=a=b" comes back as "a=b". */
int duda_reserved_cookie_check_header(struct duda_ctx *d, mk_str line)
{
    mk_str pair = mk_str_trim(mk_str_cut(&line, ';')), name;
    do
        name = mk_str_trim(mk_str_cut(&pair, '='));
    while (!name.len && pair.p);
    return duda_reserved_cookie_check(d, name);
}
