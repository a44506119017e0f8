/* SPDX-License-Identifier: Apache-2.0 */
/* Login with OpenID Connect providers. */
#ifndef DUDA_OIDC_H
#define DUDA_OIDC_H

/* C++ compilers warn about designated initializers that omit members. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC system_header
#endif

#include <duda/middleware.h>
#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-oidc.so: `#define DUDA_USE "duda-oidc"` before including <duda.h>, and
 * link with `pkg-config --libs duda-oidc`. Each provider is an [OIDC] section of the configuration:
 *
 *     [OIDC]
 *         Issuer      https://login.example.org
 *         Client      shop
 *         Secret      env:OIDC_SECRET
 *         RedirectUrl https://shop.example.org/callback
 *     [HTTP_CLIENT]
 *         Name        login.example.org
 *         Server      login
 *
 * The package sends requests only to hosts that are the Name of an [HTTP_CLIENT] section. If the section
 * [OIDC] has the key `HttpClient`, the package sends them only over the [HTTP_CLIENT] with this Name, to its
 * Server and the hosts in its AllowHosts. Each worker caches the endpoints and keys of a provider for an
 * hour. The functions are handlers for routes:
 *
 *     static const struct duda_oidc_login login = DUDA_OIDC_LOGIN(.on_login = keep_name);
 *
 *     DUDA_ROUTES(account,
 *         DUDA_GET("/in", duda_oidc_log_in, "Begins the login.", .data = &login),
 *         DUDA_GET("/callback", duda_oidc_callback, "Completes the login.", .data = &login),
 *         DUDA_BEFORE(duda_csrf_check),
 *         DUDA_POST("/out", duda_oidc_log_out, "Logs out, here and at the provider.", .data = &login));
 */

/** The `.data` of the routes; NULL selects the defaults. Initialize it with DUDA_OIDC_LOGIN(). */
struct duda_oidc_login {
    enum duda_data_type type;
    const char *provider; /**< Name of the [OIDC] section; NULL: the only section, or the one named "main" */
    /**
     * Called after the login; NULL: nothing is called. duda_session_log_in() has bound the session to `user`:
     * the Name of the section, a colon, and the claim `sub`, so equal subjects of different providers are
     * different users. `claims` is the JSON of the verified ID token. Returns 0, or any other result of a
     * handler to reject the user: the session is then destroyed, and the request ends with that result. May
     * wait.
     */
    int (*on_login)(struct duda_ctx *d, mk_str user, mk_str claims);
    const char *home; /**< path, without the prefix from [ROUTES], to which the browser is redirected after a
                           login or logout; NULL: "/" */
    /**
     * Called if the provider reports an error instead of a login, such as `access_denied` or, for a request
     * with the prompt `none`, `login_required`. Its result is the result of the callback route. The session
     * is unchanged. Clients can forge `error`, so escape it in pages. NULL: the client gets 403.
     */
    duda_verdict (*on_error)(struct duda_ctx *d, mk_str error);
    uint64_t reserved[3]; /**< must be zero */
};
/* clang-format off */
/** Initializes a struct duda_oidc_login: `DUDA_OIDC_LOGIN(.on_login = keep_name, .home = "/me")`. */
#define DUDA_OIDC_LOGIN(...) MK_API_INIT(duda_oidc_login){.type = DUDA_DATA_OIDC_LOGIN, __VA_ARGS__}
/* clang-format on */

/** Options of a login. The request to the provider contains no parameter for an absent member. */
struct duda_oidc_request {
    mk_str next;   /**< local path to which the browser is redirected after the login; absent: `.home` */
    mk_str prompt; /**< `none`: no page of the provider is shown; `login`: the user must authenticate again;
                            `consent`, `select_account`, or several of these, separated by spaces */
    mk_str login_hint; /**< user name or email address, which the provider's page then suggests */
    mk_str acr_values; /**< authentication context classes, separated by spaces; the ID token must name one */
    mk_str ui_locales; /**< languages for the provider's pages, separated by spaces */
    uint32_t max_age_s; /**< the user must have authenticated at most this many seconds ago; 0: no limit */
};

/**
 * Begins a login with the authorization code flow and PKCE: stores state, nonce and code verifier in the
 * session, and redirects the browser to the provider. After the login, the browser is redirected to the local
 * path in the query parameter `next`, which duda_auth_session() sets. If the provider fails, the client gets
 * 502.
 */
MK_API duda_verdict duda_oidc_log_in(struct duda_ctx *d);
/**
 * Like duda_oidc_log_in(), but with options, for example before a payment, or for a user whose address is
 * known. duda_oidc_callback() rejects an ID token whose `auth_time` violates `max_age_s`, or whose `acr` is
 * none of `acr_values`. `login` is the `.data` of the callback route; NULL selects the defaults.
 *
 *     static int confirm(struct duda_ctx *d)
 *     {
 *         const struct duda_oidc_request request = {.next = MK_STR("/pay"), .prompt = MK_STR("login"),
 *                                                   .max_age_s = 60};
 *         return duda_oidc_log_in_with(d, NULL, &request);
 *     }
 */
MK_API duda_verdict duda_oidc_log_in_with_sized(struct duda_ctx *d, const struct duda_oidc_login *login,
                                                const struct duda_oidc_request *request, size_t request_size);
static inline duda_verdict duda_oidc_log_in_with(struct duda_ctx *d, const struct duda_oidc_login *login,
                                                 const struct duda_oidc_request *request)
{
    return duda_oidc_log_in_with_sized(d, login, request, sizeof *request);
}
/**
 * Handles the redirect from the provider: exchanges the code for an ID token, verifies the token (signature
 * by a published key, issuer, audience, expiry, nonce), and logs the user in with a new session ID. A state
 * is valid once, and only in the browser that began the login; all other requests get 403, and so do
 * responses with the `iss` of another provider (RFC 9207). If the provider fails, the client gets 502.
 */
MK_API duda_verdict duda_oidc_callback(struct duda_ctx *d);
/** Destroys the session, and redirects the browser to the provider's logout endpoint (RP-initiated logout),
 * which redirects it to `PostLogoutUrl`. With `TokenStore`, the ID token is sent as `id_token_hint`, so that
 * the provider need not ask the user for confirmation. If the provider has no such endpoint, redirects to
 * `.home`. */
MK_API duda_verdict duda_oidc_log_out(struct duda_ctx *d);
/**
 * Handles a back-channel logout: the provider sends a logout token when the user has logged out there, and
 * the function revokes all sessions of this user on this virtual host (see duda_session_revoke_all()). The
 * token names the user (`sub`), or only the session at the provider (`sid`). The function finds the user of a
 * `sid` if the ID token of a login contained it; otherwise there is nothing to revoke, and the provider gets
 * 200. The route must be a DUDA_POST() above any DUDA_BEFORE(duda_csrf_check), and its URL must be registered
 * with the provider.
 *
 * The response to an invalid token is 400. Tokens with neither `sub` nor `sid`, tokens without `jti`, and
 * tokens whose `iat` is more than 5 minutes plus `Leeway` ago are invalid, too. Each token is accepted only
 * once: its `jti` is kept in the `TokenStore`, or else in the memory of the server. With `Store cookie` in
 * [SESSIONS], sessions cannot be revoked, and the provider gets 501.
 */
MK_API duda_verdict duda_oidc_back_channel_log_out(struct duda_ctx *d);

/**
 * Returns an access token of the user, to call an API of the provider. If the token is about to expire, the
 * function refreshes it first: one request per session, even if handlers of several workers, or of several
 * machines with a common `TokenStore`, call it at the same time. The refresh completes even if the client
 * disconnects.
 *
 * [OIDC] must name a `TokenStore`. The tokens are encrypted there with a key that only the session contains,
 * and never reach the browser. The store `memory` loses them when the server restarts. `provider` is the Name
 * of the [OIDC] section, as in struct duda_oidc_login.
 *
 * Returns 0 with *token, valid until the handler returns; -EKEYEXPIRED: the user must log in again, because
 * the session has no tokens, they have expired, or the provider refuses to refresh them; -EHOSTUNREACH: the
 * provider does not respond; -ENOTSUP: there is no `TokenStore`; -ENODEV: there is no such section; or an
 * error of the session, the store or the wait.
 *
 *     mk_str token;
 *     int e = duda_oidc_access_token(d, NULL, &token);
 *     if (e == -EKEYEXPIRED)
 *         return duda_redirect(d, 303, MK_STR("/in"));
 *     if (e)
 *         return e;
 *     const struct mk_header bearer = {MK_STR("Authorization"),
 *                                      duda_sprintf(d, "Bearer %.*s", MK_STR_ARG(token))};
 */
MK_API int duda_oidc_access_token(struct duda_ctx *d, const char *provider, mk_str *token) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
