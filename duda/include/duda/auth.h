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
#include <duda/middleware.h>
#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-auth.so: `#define DUDA_USE "duda-auth"` before including <duda.h>, and
 * link with `pkg-config --libs duda-auth`. For JSON Web Tokens see duda/jwt.h, for OpenID Connect
 * duda/oidc.h.
 *
 * duda_auth_basic(), duda_auth_bearer(), duda_auth_api_key() and duda_auth_session() are middleware for
 * DUDA_BEFORE(). They authenticate the client, or respond with 401 and the challenge that HTTP requires.
 * Their `.data` is a constant struct, which a macro initializes. A missing or wrong `.data` is an error at
 * load.
 *
 *     static const struct duda_token_auth api = DUDA_TOKEN_AUTH(.realm = "shop", .find = find_token);
 *
 *     DUDA_ROUTES(orders,
 *         DUDA_BEFORE(duda_auth_bearer, .data = &api, .security = "bearer"),
 *         DUDA_GET("/orders", list_orders, "Lists the orders of the user."),
 *         DUDA_BEFORE(duda_require_role, .data = "admin"),
 *         DUDA_DELETE("/orders/:id", delete_order, "Deletes an order."));
 */

/** The authenticated client of a request. All strings are valid until the handler returns. */
struct duda_identity {
    mk_str user;         /**< ID of the user, or of the program that calls the API */
    const mk_str *roles; /**< roles or permissions */
    size_t n_roles;
    mk_str claims;        /**< JSON object with the claims of a token; absent for other schemes */
    const char *scheme;   /**< "Basic", "Bearer", "ApiKey" or "Session" */
    void *data;           /**< for use by the service */
    uint64_t reserved[4]; /**< must be zero */
};
/** Returns the identity that middleware has authenticated; NULL if the client is not authenticated. Valid
 * until the handler returns. */
MK_API const struct duda_identity *duda_identity(struct duda_ctx *d);
/**
 * For your own middleware: stores a copy of the struct for the rest of the request. Its strings and the array
 * `roles` are not copied: they must stay valid until the handler returns. Returns 0 or -ENOMEM.
 *
 *     static int find_device(struct duda_ctx *d)
 *     {
 *         const struct duda_identity device = {.user = duda_header(d, "X-Device")};
 *         int e = knows_device(d, device.user) ? duda_identity_set(d, &device) : 401;
 *         return e ? e : DUDA_NEXT;
 *     }
 */
MK_API int duda_identity_set(struct duda_ctx *d, const struct duda_identity *identity) MK_API_MUST_USE;
/**
 * Returns whether the client is authenticated and has the role.
 *
 *     if (!duda_has_role(d, "admin"))
 *         return 403;
 */
MK_API bool duda_has_role(struct duda_ctx *d, const char *role);
/**
 * Middleware that requires a role. `.data` is the name of the role, or a list of names separated by spaces,
 * of which the client needs one: `DUDA_BEFORE(duda_require_role, .data = "admin editor")`. Other clients get
 * 403. Middleware that authenticates must precede this one in the table; otherwise every client gets 500. A
 * missing `.data` is an error at load.
 */
MK_API duda_verdict duda_require_role(struct duda_ctx *d);
/**
 * For your own middleware: responds with 401 and `WWW-Authenticate: SCHEME realm="..."`. `error` becomes the
 * parameter `error` of the challenge (RFC 6750); pass NULL if the client has sent no credentials. Return the
 * result from the middleware.
 *
 *     return duda_auth_challenge(d, "Bearer", "shop", "invalid_token");
 */
MK_API duda_verdict duda_auth_challenge(struct duda_ctx *d, const char *scheme, const char *realm,
                                        const char *error) MK_API_MUST_USE;

/* ---- Passwords ---- */

/**
 * Hashes a password for storage. The hash is computed in a thread, so only this handler waits. `out` is
 * NUL-terminated. Returns 0, an error of duda_password_hash_blocking(), or an error of duda_offload().
 *
 *     char hash[DUDA_PASSWORD_SIZE];
 *     int e = duda_password_hash(d, duda_form(d, "password"), hash);
 */
MK_API int duda_password_hash(struct duda_ctx *d, mk_str password,
                              char out[DUDA_PASSWORD_SIZE]) MK_API_MUST_USE;
/**
 * Verifies a password in a thread, like duda_password_verify_blocking(). Pass an absent hash for unknown
 * users, so that the response time does not reveal whether a user exists. Sets *matches, to false on error.
 * Returns 0, or an error of duda_offload(). -EAGAIN, which becomes status 503, means that too many passwords
 * are being verified at the same time.
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

/** The `.data` of duda_auth_basic(); initialize it with DUDA_BASIC_AUTH(). */
struct duda_basic_auth {
    enum duda_data_type type;
    const char *realm; /**< name of the protected area, which browsers show; NULL: "restricted" */
    /** Finds a user: sets *password_hash to the output of duda_password_hash(), and may set the roles of the
     * identity, whose `user` is the name that the client sent. Returns 0; -ENOENT: there is no such user; or
     * another error, which ends the request. May wait. */
    int (*find)(struct duda_ctx *d, mk_str user, mk_str *password_hash, struct duda_identity *identity);
    uint64_t reserved[4]; /**< must be zero */
};
/* clang-format off */
/** Initializes a struct duda_basic_auth: `DUDA_BASIC_AUTH(.realm = "shop", .find = find_user)`. */
#define DUDA_BASIC_AUTH(...) MK_API_INIT(duda_basic_auth){.type = DUDA_DATA_BASIC_AUTH, __VA_ARGS__}
/* clang-format on */
/**
 * HTTP Basic authentication (RFC 7617) with hashed passwords. The response for an unknown user takes as long
 * as for a wrong password. Clients send the password with each request, so each worker caches successful
 * verifications for a minute, as a keyed hash; a changed password hash takes effect at once. Use Basic
 * authentication over TLS only, and limit the rate of attempts.
 *
 *     static int find_user(struct duda_ctx *d, mk_str user, mk_str *password_hash, struct duda_identity *identity)
 *     {
 *         return find_password_hash(d, user, password_hash); // -ENOENT: there is no such user
 *     }
 *
 *     static const struct duda_basic_auth users = DUDA_BASIC_AUTH(.realm = "shop", .find = find_user);
 *
 *     DUDA_SERVICE(shop, DUDA_BEFORE(duda_auth_basic, .data = &users), DUDA_GET("/orders", list_orders, "Lists the orders."));
 */
MK_API duda_verdict duda_auth_basic(struct duda_ctx *d);

/* ---- Tokens and API keys ---- */

/** The `.data` of duda_auth_bearer() and duda_auth_api_key(); initialize it with DUDA_TOKEN_AUTH(). */
struct duda_token_auth {
    enum duda_data_type type;
    const char *realm; /**< NULL: "restricted" */
    /** Finds the token by its hash, and sets at least `user` of the identity. Returns 0; -ENOENT: there is no
     * such token; or another error, which ends the request. May wait. */
    int (*find)(struct duda_ctx *d, mk_str token_hash, struct duda_identity *identity);
    const char *header;   /**< API keys: name of the header; NULL: "X-API-Key" */
    const char *query;    /**< API keys: name of a query parameter, whose value may appear in logs; NULL:
                               none */
    uint64_t reserved[4]; /**< must be zero */
};
/* clang-format off */
/** Initializes a struct duda_token_auth: `DUDA_TOKEN_AUTH(.realm = "shop", .find = find_token)`. */
#define DUDA_TOKEN_AUTH(...) MK_API_INIT(duda_token_auth){.type = DUDA_DATA_TOKEN_AUTH, __VA_ARGS__}
/* clang-format on */
/**
 * Returns the credentials in the request header Authorization, without the name of the scheme. Absent if the
 * request has no such header, or if the header names another scheme; the case of the scheme is ignored. For
 * your own middleware:
 *
 *     mk_str token = duda_auth_credentials(d, MK_STR("Bearer"));
 */
MK_API mk_str duda_auth_credentials(struct duda_ctx *d, mk_str scheme);
/** Authenticates clients by bearer tokens (RFC 6750) that the service has issued with duda_token_new(). The
 * service stores only the hashes of its tokens, and looks a token up by its hash, so neither a copy of the
 * database nor the response time reveals a token. */
MK_API duda_verdict duda_auth_bearer(struct duda_ctx *d);
/**
 * Like duda_auth_bearer(), for API keys in a header such as X-API-Key, or in a query parameter.
 *
 *     static const struct duda_token_auth keys = DUDA_TOKEN_AUTH(.find = find_token, .header = "X-Shop-Key");
 *
 *     DUDA_SERVICE(shop, DUDA_BEFORE(duda_auth_api_key, .data = &keys), DUDA_GET("/orders", list_orders, "Lists the orders."));
 */
MK_API duda_verdict duda_auth_api_key(struct duda_ctx *d);

/** Length of a token's hash as text, without the NUL; maximum length of a token. */
enum { DUDA_TOKEN_HASH_LEN = 64, DUDA_TOKEN_MAX = 512 };
/**
 * Generates a token or API key with 256 random bits. Show *token to the user once, and store *hash; both are
 * valid until the handler returns. `prefix`, such as "shop_", makes leaked tokens recognizable; it may be
 * NULL. Returns 0; -EMSGSIZE: the token would exceed DUDA_TOKEN_MAX; or -ENOMEM.
 *
 *     mk_str token, hash;
 *     int e = duda_token_new(d, "shop_", &token, &hash);
 *     e = e ? e : duda_kv_set(d, duda_kv_find(d, NULL), hash, MK_STR("ana"), 0);
 */
MK_API int duda_token_new(struct duda_ctx *d, const char *prefix, mk_str *token,
                          mk_str *hash) MK_API_MUST_USE;
/**
 * Returns the hash of a token, as DUDA_TOKEN_HASH_LEN hexadecimal digits; absent if memory is exhausted.
 *
 *     mk_str hash = duda_token_hash(d, duda_form(d, "token")); // the key under which the token is stored
 */
MK_API mk_str duda_token_hash(struct duda_ctx *d, mk_str token) MK_API_MUST_USE;

/* ---- Sessions ---- */

/** The `.data` of duda_auth_session(), which may be NULL; initialize it with DUDA_SESSION_AUTH(). */
struct duda_session_auth {
    enum duda_data_type type;
    /** Path of the login page, without the prefix from [ROUTES]; or the URL of another site. Browsers that
     * open a page are redirected to it, with the current path as the query parameter `next` (see
     * duda_redirect_local()). NULL: they get 401, like all other clients. */
    const char *login;
    /** Sets the roles of the user; NULL: users have no roles. Returns 0; -ENOENT: the user no longer exists;
     * or another error, which ends the request. May wait. */
    int (*find)(struct duda_ctx *d, mk_str user, struct duda_identity *identity);
    uint64_t reserved[4]; /**< must be zero */
};
/* clang-format off */
/** Initializes a struct duda_session_auth: `DUDA_SESSION_AUTH(.login = "/log-in")`. */
#define DUDA_SESSION_AUTH(...) MK_API_INIT(duda_session_auth){.type = DUDA_DATA_SESSION_AUTH, __VA_ARGS__}
/* clang-format on */
/**
 * Requires a session that duda_session_log_in() has bound to a user.
 *
 *     static const struct duda_session_auth members = DUDA_SESSION_AUTH(.login = "/log-in");
 *
 *     DUDA_ROUTES(account, DUDA_BEFORE(duda_auth_session, .data = &members), DUDA_GET("/orders", list_orders, "Lists the orders."));
 */
MK_API duda_verdict duda_auth_session(struct duda_ctx *d);

#ifdef __cplusplus
}
#endif

#endif
