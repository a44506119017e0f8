/* SPDX-License-Identifier: Apache-2.0 */
/* Login with OpenID Connect providers. */
#ifndef DUDA_OIDC_H
#define DUDA_OIDC_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-oidc.so: `#define DUDA_USE "duda-oidc"` before including <duda.h>, and link
 * with `pkg-config --libs duda-oidc`. Each provider is an [OIDC] section of the configuration:
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
 * Requests go only to hosts that are the Name of an [HTTP_CLIENT] section. Each worker caches the endpoints and
 * keys of a provider for an hour. The functions are handlers of routes:
 *
 *     static const struct duda_oidc_login login = {.on_login = keep_name};
 *
 *     DUDA_ROUTES(account,
 *         DUDA_GET("/in", duda_oidc_log_in, "Begins a login.", .data = &login),
 *         DUDA_GET("/callback", duda_oidc_callback, "Where the provider redirects the browser.", .data = &login),
 *         DUDA_BEFORE(duda_csrf_check),
 *         DUDA_POST("/out", duda_oidc_log_out, "Logs out, here and at the provider.", .data = &login));
 */

/** The `.data` of the routes; NULL selects the only [OIDC] section, and no function. */
struct duda_oidc_login {
    const char *provider; /**< Name of the [OIDC] section; NULL: the only section, or the one named "main" */
    /**
     * Called after the login: duda_session_log_in() has bound the session to `user`, which is the Name of the
     * section, a colon, and the claim `sub`: subjects of different providers are different users. `claims` is
     * the JSON of the verified ID token. Returns 0, or a result of a handler that ends the request; the
     * session is then destroyed. May wait.
     */
    int (*on_login)(struct duda_ctx *d, mk_str user, mk_str claims);
    const char *home;     /**< path to which the browser is redirected after a login or logout; NULL: "/" */
    uint64_t reserved[4]; /**< must be zero */
};

/**
 * Begins a login with the authorization code flow and PKCE: stores state, nonce and code verifier in the session,
 * and redirects the browser to the provider. A local path in the query parameter `next` is where the browser goes
 * after the login, as duda_auth_session() asks for. 502 if the provider does not respond correctly.
 */
MK_API duda_verdict duda_oidc_log_in(struct duda_ctx *d);
/**
 * Handles the redirect from the provider: exchanges the code for an ID token, verifies the token (signature with a
 * published key, issuer, audience, expiry, nonce), and logs the user in, with a new session ID. A state is valid
 * once, in the browser that began the login. Other requests get 403; 502 if the provider does not respond
 * correctly.
 */
MK_API duda_verdict duda_oidc_callback(struct duda_ctx *d);
/** Destroys the session, and redirects the browser to the logout endpoint of the provider, if it has one
 * (RP-initiated logout), from where it returns to `PostLogoutUrl`. */
MK_API duda_verdict duda_oidc_log_out(struct duda_ctx *d);

#ifdef __cplusplus
}
#endif

#endif
