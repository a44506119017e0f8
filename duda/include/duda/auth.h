/* SPDX-License-Identifier: Apache-2.0 */
/* Authentication middleware: passwords (Basic), bearer tokens, API keys, sessions, and roles. */
#ifndef DUDA_AUTH_H
#define DUDA_AUTH_H

/* A function and a struct in this header have the same name, which is valid C++, but some compilers warn
 * about it. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC system_header
#endif

#include <duda/crypto.h>
#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-auth.so: `#define DUDA_USE "duda-auth"` before including <duda.h>, and
 * link with `pkg-config --libs duda-auth`. JSON Web Tokens are in duda/jwt.h, OpenID Connect is in
 * duda/oidc.h.
 *
 * Each function whose name begins with duda_auth_ is middleware for DUDA_BEFORE(). It authenticates the
 * client, or responds with 401 and the challenge that HTTP requires. Its `.data` is constant:
 *
 *     static const struct duda_token_auth api = {.realm = "shop", .find = find_token};
 *
 *     DUDA_ROUTES(orders,
 *         DUDA_BEFORE(duda_auth_bearer, .data = &api, .security = "bearer"),
 *         DUDA_GET("/orders", list_orders, "Lists the orders of the user."),
 *         DUDA_BEFORE(duda_require_role, .data = "admin"),
 *         DUDA_DELETE("/orders/:id", delete_order, "Deletes an order."));
 */

/** The authenticated client of a request. All strings live until the handler returns. */
struct duda_identity {
    mk_str user;         /**< ID of the user, or of the program that uses the API */
    const mk_str *roles; /**< roles or permissions */
    size_t n_roles;
    mk_str claims;        /**< JSON object with the claims of a token; absent for other schemes */
    const char *scheme;   /**< "Basic", "Bearer", "ApiKey" or "Session" */
    void *data;           /**< for the service */
    uint64_t reserved[4]; /**< must be zero */
};
/** Returns the client that middleware has authenticated; NULL if none has. */
MK_API const struct duda_identity *duda_identity(struct duda_ctx *d);
/** For middleware of your own: stores a copy of the identity for the rest of the request. The strings must
 * live as long, and `roles`, too. Returns 0 or -ENOMEM. */
MK_API int duda_identity_set(struct duda_ctx *d, const struct duda_identity *identity) MK_API_MUST_USE;
/** Returns whether the client is authenticated and has the role. */
MK_API bool duda_has_role(struct duda_ctx *d, const char *role);
/**
 * Middleware that requires a role; `.data` is its name, or several separated by spaces, one of which
 * suffices: `DUDA_BEFORE(duda_require_role, .data = "admin editor")`. Other clients get 403. The middleware
 * that authenticates must be before it in the table; otherwise every client gets 500.
 */
MK_API duda_verdict duda_require_role(struct duda_ctx *d);
/**
 * For middleware of your own: responds with 401 and `WWW-Authenticate: SCHEME realm="..."`. `error` becomes
 * the parameter `error` of the challenge (RFC 6750); NULL: the client has sent no credentials. Returns the
 * result for the handler.
 *
 *     return duda_auth_challenge(d, "Bearer", "shop", "invalid_token");
 */
MK_API duda_verdict duda_auth_challenge(struct duda_ctx *d, const char *scheme, const char *realm,
                                        const char *error) MK_API_MUST_USE;

/* ---- Passwords ---- */

/**
 * Hashes a password for storage, in a thread, so that only this handler waits. `out` is NUL-terminated.
 * Returns 0, an error of duda_password_hash_blocking(), or an error of duda_offload().
 *
 *     char hash[DUDA_PASSWORD_SIZE];
 *     int e = duda_password_hash(d, duda_form(d, "password"), hash);
 */
MK_API int duda_password_hash(struct duda_ctx *d, mk_str password,
                              char out[DUDA_PASSWORD_SIZE]) MK_API_MUST_USE;
/**
 * Verifies a password in a thread: see duda_password_verify_blocking(). Pass an absent hash for unknown users,
 * so that the response time does not reveal whether a user exists. *matches is false on error. Returns 0, or
 * an error of duda_offload(): -EAGAIN, which becomes status 503, means that too many passwords are being
 * verified at the same time.
 *
 *     bool matches;
 *     int e = duda_password_verify(d, duda_form(d, "password"), stored, &matches);
 *     if (e)
 *         return e;
 *     if (!matches)
 *         return 403;
 */
MK_API int duda_password_verify(struct duda_ctx *d, mk_str password, mk_str hash,
                                bool *matches) MK_API_MUST_USE;

/** The `.data` of duda_auth_basic(). */
struct duda_basic_auth {
    const char *realm; /**< name that browsers show; NULL: "restricted" */
    /** Finds a user: sets *password_hash to the output of duda_password_hash(), and the roles of the identity,
     * whose `user` is the name that the client sent. Returns 0, -ENOENT: there is no such user, or another
     * error, which ends the request. May wait. */
    int (*find)(struct duda_ctx *d, mk_str user, mk_str *password_hash, struct duda_identity *identity);
    uint64_t reserved[4]; /**< must be zero */
};
/**
 * HTTP Basic authentication (RFC 7617) with hashed passwords. An unknown user takes as long as a wrong
 * password. Each worker caches for a minute that a password was right, as a keyed hash, because clients send
 * it with each request; a changed password hash takes effect at once. Use it over TLS only, and limit the rate
 * of attempts.
 */
MK_API duda_verdict duda_auth_basic(struct duda_ctx *d);

/* ---- Tokens and API keys ---- */

/** The `.data` of duda_auth_bearer() and duda_auth_api_key(). */
struct duda_token_auth {
    const char *realm; /**< NULL: "restricted" */
    /** Finds the token by its hash, and sets at least `user` of the identity. Returns 0, -ENOENT: there is no
     * such token, or another error, which ends the request. May wait. */
    int (*find)(struct duda_ctx *d, mk_str token_hash, struct duda_identity *identity);
    const char *header;   /**< API keys: name of the header; NULL: "X-API-Key" */
    const char *query;    /**< API keys: name of a query parameter, which logs may show; NULL: none */
    uint64_t reserved[4]; /**< must be zero */
};
/** Bearer tokens (RFC 6750) that the service has issued with duda_token_new(). The service stores only their
 * hashes, and looks them up by hash, so neither a copy of the database nor the response time reveals a
 * token. */
MK_API duda_verdict duda_auth_bearer(struct duda_ctx *d);
/** API keys in a header of their own, or in a query parameter: otherwise like duda_auth_bearer(). */
MK_API duda_verdict duda_auth_api_key(struct duda_ctx *d);

/** Length of the hash of a token as text, without the NUL, and maximum length of a token. */
enum { DUDA_TOKEN_HASH_LEN = 64, DUDA_TOKEN_MAX = 512 };
/**
 * Generates a token or API key with 256 random bits. Show `token` to the user once, and store `hash`. `prefix`,
 * such as "shop_", makes leaked tokens recognizable. Returns 0 or -ENOMEM.
 *
 *     mk_str token, hash;
 *     int e = duda_token_new(d, "shop_", &token, &hash);
 *     e = e ? e : duda_kv_set(d, duda_kv_find(d, NULL), hash, MK_STR("ana"), 0);
 */
MK_API int duda_token_new(struct duda_ctx *d, const char *prefix, mk_str *token,
                          mk_str *hash) MK_API_MUST_USE;
/** Returns the hash of a token, as DUDA_TOKEN_HASH_LEN hexadecimal digits; absent if memory is exhausted. */
MK_API mk_str duda_token_hash(struct duda_ctx *d, mk_str token) MK_API_MUST_USE;

/* ---- Sessions ---- */

/** The `.data` of duda_auth_session(), which may also be NULL. */
struct duda_session_auth {
    /** Path of the login page. Browsers that open a page are redirected to it, with the current path as the
     * query parameter `next` (see duda_redirect_local()). NULL: they get 401, like all other clients. */
    const char *login;
    /** Sets the roles of the user; NULL: users have no roles. Returns 0, -ENOENT: the user does not exist
     * anymore, or another error, which ends the request. May wait. */
    int (*find)(struct duda_ctx *d, mk_str user, struct duda_identity *identity);
    uint64_t reserved[4]; /**< must be zero */
};
/** Requires a session that duda_session_log_in() has bound to a user. */
MK_API duda_verdict duda_auth_session(struct duda_ctx *d);

#ifdef __cplusplus
}
#endif

#endif
