# SPDX-License-Identifier: Apache-2.0
"""A service that logs users in with the package oidc, and returns their access tokens; and a browser without scripts."""
SOURCE = r"""
#define DUDA_USE "duda-oidc"
#include <duda.h>
#include <duda/oidc.h>
#include <errno.h>
#include <stdlib.h>

static int show(struct duda_ctx *d)
{
    mk_str user;
    int e = duda_session_user(d, &user);
    return e && e != -ENOENT ? e : duda_printf(d, "%s\n", user.p ? user.p : "-");
}

static int show_token(struct duda_ctx *d)
{
    mk_str token;
    int e = duda_oidc_access_token(d, NULL, &token);
    return e ? e : duda_printf(d, "%s %u\n", token.p, mk_worker_index(duda_worker(d)));
}

/* The token is already available here. */
static int on_login(struct duda_ctx *d, mk_str user, mk_str claims)
{
    mk_str token;
    (void)user;
    int e = duda_oidc_access_token(d, NULL, &token);
    return strstr(claims.p, "\"banned\"") ? duda_problem(d, 403, "banned") : e == -ENOTSUP ? 0 : e;
}

static duda_verdict on_error(struct duda_ctx *d, mk_str error)
{
    return duda_printf(d, "error %.*s\n", MK_STR_ARG(error));
}

static const struct duda_oidc_login login = DUDA_OIDC_LOGIN(.on_login = on_login, .on_error = on_error);

static int log_in_again(struct duda_ctx *d)
{
    const struct duda_oidc_request request = {.next = MK_STR("/show"), .prompt = duda_query(d, "prompt"), .login_hint = duda_query(d, "hint"),
                                              .acr_values = duda_query(d, "acr"), .ui_locales = MK_STR("de fr"),
                                              .max_age_s = (uint32_t)atoi(duda_query_or(d, "age", "0"))};
    return duda_oidc_log_in_with(d, &login, &request);
}

DUDA_SERVICE(people, DUDA_GET("/show", show), DUDA_GET("/token", show_token), DUDA_GET("/a/in", duda_oidc_log_in, "", .data = &login),
             DUDA_GET("/a/back", duda_oidc_callback, "", .data = &login),
             DUDA_GET("/again", log_in_again), DUDA_POST("/out", duda_oidc_log_out, ""),
             DUDA_POST("/ended", duda_oidc_back_channel_log_out, "", .data = &login));
"""


class Browser:
    def __init__(self, server):
        self.server, self.cookies = server, {}

    def get(self, path, method="GET"):
        reply = self.server.get(path, method, [("Cookie", "; ".join(f"{n}={v}" for n, v in self.cookies.items()))] if self.cookies else [])
        for line in reply.all("Set-Cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name] = value
        return reply

    def begin(self, name, provider, query=""):
        reply = self.get(f"/{name}/in{query}")
        assert reply.status == 303, reply.text
        return provider.log_in(reply["Location"])
