/* SPDX-License-Identifier: Apache-2.0 */
/* Authentication with JSON Web Tokens (JWT) that an authorization server has issued. */
#ifndef DUDA_JWT_H
#define DUDA_JWT_H

#include <duda/auth.h>
#include <duda/service.h>
#include <duda/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-jwt.so: `#define DUDA_USE "duda-jwt", "duda-auth"` before including
 * <duda.h>, and link with `pkg-config --libs duda-jwt duda-auth`. A section of the configuration describes
 * the tokens that a service accepts:
 *
 *     [JWT]
 *         Issuer   https://login.example.org
 *         Audience https://api.example.org
 *         JwksUrl  https://login.example.org/keys
 *     [HTTP_CLIENT]
 *         Name     login.example.org
 *         Server   login
 *
 * Each worker fetches the public keys from JwksUrl, over the [HTTP_CLIENT] section whose Name is the host of
 * the URL, or over the section that `HttpClient` names. It caches the keys for an hour, and fetches them
 * again, at most once a minute, when a token names an unknown key. If the server does not respond, the old
 * keys stay valid for a day. `Key` and `Algorithm` replace JwksUrl if you sign the tokens yourself.
 */

/**
 * Middleware that requires a JWT as a bearer token (RFC 6750). `.data` is the Name of the [JWT] section; NULL
 * selects the only section, or the one named "main". A token is valid if a key of the section has signed it,
 * its `iss` and `aud` match the section, `exp` is in the future and `nbf` is not, with a tolerance of
 * `Leeway`. The keys determine the algorithm: `none`, and an HMAC computed with a public key, are never
 * accepted. Clients without a valid token get 401. All clients get 503 if the keys cannot be fetched.
 *
 * In the identity, `user` is the claim `sub`, and `claims` is the JSON of all claims. The roles come from the
 * claim that `RolesClaim` names: an array of strings, or a string of words separated by spaces, such as
 * `scope`.
 *
 *     DUDA_ROUTES(api,
 *         DUDA_BEFORE(duda_auth_jwt, .security = "jwt"),
 *         DUDA_GET("/me", show_me, "Shows the user."),
 *         DUDA_BEFORE(duda_require_role, .data = "admin"),
 *         DUDA_GET("/users", list_users, "Lists all users."));
 */
MK_API duda_verdict duda_auth_jwt(struct duda_ctx *d);

/**
 * Reads a claim of the identity: "email", or "realm_access.roles" for a nested claim. Returns 0; -ENOENT:
 * there is no such claim, or the client has no token; or -ENOMEM. *out is valid until the handler returns.
 *
 *     struct duda_value email;
 *     if (duda_claim(d, "email", &email) == 0 && email.kind == DUDA_VALUE_TEXT)
 *         ...
 */
MK_API int duda_claim(struct duda_ctx *d, const char *path, struct duda_value *out) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
