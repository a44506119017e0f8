/* SPDX-License-Identifier: Apache-2.0 */
#include <duda/memory.h>
#include <duda/middleware.h>
#include <duda/request.h>
#include <duda/send.h>
#include <duda/session.h>
#include <duda/url.h>
#include <errno.h>
#include <monkey/text.h>

#include "auth.h"

enum { NEXT_MAX = 2048 };

/* Returns whether a browser opens a page, and can thus follow a redirect to the login page. */
static bool is_page_request(struct duda_ctx *d)
{
    mk_str mode = duda_header(d, "Sec-Fetch-Mode"), accept = duda_header(d, "Accept");
    if (!mk_str_eq(duda_method(d), MK_STR("GET")))
        return false;
    return mode.p ? mk_str_eq(mode, MK_STR("navigate")) : accept.p && strstr(accept.p, "text/html") != NULL;
}

static duda_verdict redirect_to_login(struct duda_ctx *d, const char *login)
{
    char *buf = duda_alloc(d, NEXT_MAX);
    struct mk_buf url = mk_buf_fixed(buf, buf ? NEXT_MAX : 0);
    mk_str page = duda_mount_url(d, mk_str_from_c(login));
    mk_buf_add(&url, page);
    mk_buf_addf(&url, "%cnext=", strchr(login, '?') ? '&' : '?');
    mk_url_escape(&url, mk_request_target(duda_request(d)));
    return duda_redirect(d, 303, url.failed ? page : mk_buf_str(&url));
}

static duda_verdict reject_session(struct duda_ctx *d, const struct duda_session_auth *auth)
{
    if (auth && auth->login && is_page_request(d))
        return redirect_to_login(d, auth->login);
    return duda_auth_challenge(d, "Session", NULL, NULL);
}

duda_verdict duda_auth_session(struct duda_ctx *d)
{
    const struct duda_session_auth *auth = duda_middleware_data(d);
    struct duda_identity identity = {.scheme = "Session"};
    if (auth && !duda_data_has_type(auth, DUDA_DATA_SESSION_AUTH))
        return duda_reason(
            d, -EINVAL,
            "the `.data` of duda_auth_session() must be one that DUDA_SESSION_AUTH() initializes");
    int e = duda_session_user(d, &identity.user);
    if (!e && !identity.user.p)
        e = -ENOENT;
    if (!e && auth && auth->find)
        e = auth->find(d, identity.user, &identity);
    if (e == -ENOENT)
        return reject_session(d, auth);
    e = e ? e : duda_identity_set(d, &identity);
    return e ? e : DUDA_NEXT;
}
