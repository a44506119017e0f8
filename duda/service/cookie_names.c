/* SPDX-License-Identifier: Apache-2.0 */
#include "service/cookie_names.h"

#include <errno.h>

#include "service/task.h"

static const char *const ends[] = {
    [DUDA_COOKIE_SESSION] = "-session",
    [DUDA_COOKIE_TOKEN] = "-token",
};

bool duda_cookies_are_safe(const struct duda *d)
{
    return d->request && mk_str_eq(mk_request_scheme(d->request), MK_STR("https"));
}

const char *duda_cookies_name(const struct duda *d, enum duda_own_cookie which, struct duda_cookie_name *room)
{
    struct mk_buf name = mk_buf_fixed(room->text, sizeof room->text - 1);
    mk_buf_addf(&name, "%s%.*s%s", duda_cookies_are_safe(d) ? "__Host-" : "", MK_STR_ARG(duda_scope(d)),
                ends[which]);
    room->text[name.len] = '\0';
    return room->text;
}

/* ---- Names that services must not use ---- */

/* Browsers and servers differ about the case of letters in names of cookies. */
static bool skip_prefix(mk_str *name, mk_str prefix)
{
    bool has = name->len >= prefix.len && mk_str_eq_nocase(mk_str_first(*name, prefix.len), prefix);
    if (has)
        *name = mk_str_skip(*name, prefix.len);
    return has;
}

static bool is_scope(const struct duda_home *home, mk_str scope)
{
    size_t i = 0;
    while (i < home->n_scopes && !mk_str_eq_nocase(home->scopes[i], scope))
        i++;
    return i < home->n_scopes;
}

static bool is_own(const struct duda_home *home, mk_str name)
{
    while (skip_prefix(&name, MK_STR("__Host-")) || skip_prefix(&name, MK_STR("__Secure-")))
        continue;
    for (size_t i = 0; i < MK_LEN(ends); i++) {
        mk_str end = mk_str_from_c(ends[i]);
        if (name.len > end.len && mk_str_eq_nocase(mk_str_skip(name, name.len - end.len), end) &&
            is_scope(home, mk_str_first(name, name.len - end.len)))
            return true;
    }
    return false;
}

int duda_cookies_allow(const struct duda *d, mk_str name)
{
    if (!is_own(d->home, name))
        return 0;
    duda_task_log(d, MK_LOG_WARN,
                  "the service must not set the cookie `%.*s`: Duda keeps a session or a token in it",
                  MK_STR_ARG(name));
    return -EPERM;
}

/* Without a name, the text as a whole is the value, and is sent as it is: "=a=b" comes back as "a=b". */
int duda_cookies_allow_line(const struct duda *d, mk_str line)
{
    mk_str pair = mk_str_trim(mk_str_cut(&line, ';')), name;
    do
        name = mk_str_trim(mk_str_cut(&pair, '='));
    while (!name.len && pair.p);
    return duda_cookies_allow(d, name);
}
