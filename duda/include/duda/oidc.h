/* SPDX-License-Identifier: Apache-2.0 */
/* Login with OpenID Connect providers. */
#ifndef DUDA_OIDC_H
#define DUDA_OIDC_H

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
 * The package sends requests only to hosts that are the Name of an [HTTP_CLIENT] section. Each worker caches
 * the endpoints and keys of a provider for an hour. The functions are handlers for routes:
 *
 *     static const struct duda_oidc_login login = {.on_login = keep_name};
 *
 *     DUDA_ROUTES(account,
 *         DUDA_GET("/in", duda_oidc_log_in, "Begins the login.", .data = &login),
 *         DUDA_GET("/callback", duda_oidc_callback, "Completes the login.", .data = &login),
 *         DUDA_BEFORE(duda_csrf_check),
 *         DUDA_POST("/out", duda_oidc_log_out, "Logs out, here and at the provider.", .data = &login));
 */

/** The `.data` of the routes; NULL selects the defaults: a struct of zeros. */
struct duda_oidc_login {
    const char *provider; /**< Name of the [OIDC] section; NULL: the only section, or the one named "main" */
    /**
     * Called after the login; NULL: nothing is called. duda_session_log_in() has bound the session to `user`:
     * the Name of the section, a colon, and the claim `sub`, so equal subjects of different providers are
     * different users. `claims` is the JSON of the verified ID token. Returns 0, or any other result of a
     * handler to reject the user: the session is then destroyed, and the request ends with that result. May
     * wait.
     */
    int (*on_login)(struct duda_ctx *d, mk_str user, mk_str claims);
    const char *home;     /**< path to which the browser is redirected after a login or logout; NULL: "/" */
    uint64_t reserved[4]; /**< must be zero */
};

/**
 * Begins a login with the authorization code flow and PKCE: stores state, nonce and code verifier in the
 * session, and redirects the browser to the provider. After the login, the browser is redirected to the local
 * path in the query parameter `next`, which duda_auth_session() sets. If the provider fails, the client gets
 * 502.
 */
MK_API duda_verdict duda_oidc_log_in(struct duda_ctx *d);
/**
 * Handles the redirect from the provider: exchanges the code for an ID token, verifies the token (signature
 * by a published key, issuer, audience, expiry, nonce), and logs the user in with a new session ID. A state
 * is valid once, and only in the browser that began the login; other requests get 403. If the provider fails,
 * the client gets 502.
 */
MK_API duda_verdict duda_oidc_callback(struct duda_ctx *d);
/** Destroys the session, and redirects the browser to the provider's logout endpoint (RP-initiated logout),
 * which redirects it to `PostLogoutUrl`. If the provider has no such endpoint, redirects to `.home`. */
MK_API duda_verdict duda_oidc_log_out(struct duda_ctx *d);

#ifdef __cplusplus
}
#endif

#endif
