/* SPDX-License-Identifier: Apache-2.0 */
/* Per-browser state: cookies, sessions, and CSRF tokens. */
#ifndef DUDA_SESSION_H
#define DUDA_SESSION_H

/* A function and a struct in this header have the same name, which is valid C++, but some compilers warn
 * about it. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC system_header
#endif

#include <duda/service.h>
#include <monkey/cookie.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The strings that these functions return are NUL-terminated. */

/* ---- Cookies ---- */

/**
 * Reads a cookie of the request: the value of the first one with that name; absent if there is none.
 *
 *     bool is_dark = mk_str_eq(duda_cookie(d, "theme"), MK_STR("dark"));
 */
MK_API mk_str duda_cookie(struct duda_ctx *d, const char *name);
/**
 * Sets a cookie by adding a Set-Cookie header (see mk_cookie_write()), with `Secure` over TLS, `HttpOnly`
 * and `SameSite=Lax`. Returns 0; -EINVAL: the cookie is invalid; -EPERM: the name belongs to one of Duda's
 * own cookies; -EALREADY: the response has started; -ENOMEM.
 *
 * Duda reserves the names `SCOPE-session` and `SCOPE-token` for the scope (duda/scope.h) of every service of
 * the server, with or without the prefix `__Host-` or `__Secure-`. You cannot set or delete these cookies
 * with any function, not even duda_header_set() or duda_header_add(): a client that controls the name of a
 * cookie could otherwise plant its own session in another user's browser. Each attempt logs a warning with
 * the name of the cookie.
 *
 *     int e = duda_cookie_set(d, &(struct mk_cookie){.name = "theme", .value = MK_STR("dark")});
 */
MK_API int duda_cookie_set_sized(struct duda_ctx *d, const struct mk_cookie *cookie,
                                 size_t cookie_size) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_cookie_set(struct duda_ctx *d, const struct mk_cookie *cookie)
{
    return duda_cookie_set_sized(d, cookie, sizeof *cookie);
}
/**
 * Deletes the cookie with that name and the path "/" from the browser. Returns -EPERM as above.
 *
 *     int e = duda_cookie_delete(d, "theme");
 */
MK_API int duda_cookie_delete(struct duda_ctx *d, const char *name) MK_API_MUST_USE;

/**
 * Sets a signed cookie, which clients cannot change (HMAC-SHA-256), or an encrypted cookie, which they can
 * neither read nor change (AES-256-GCM). The value may contain any bytes. The server enforces the `max_age`
 * of both kinds. Both are bound to their name, to the service and its virtual host (duda/scope.h explains how
 * to share them), and to the keys of the server: `KeyFile` of [SESSIONS], `DUDA_KEYS` in the environment, or
 * else a key that the server generates and that lasts as long as its master process. Returns -ENOTSUP if
 * Monkey was built without OpenSSL, or a result of duda_cookie_set().
 *
 *     const struct mk_cookie cart = {.name = "cart", .value = MK_STR("17"), .max_age = 7 * 86400};
 *     int e = duda_cookie_set_signed(d, &cart);
 */
MK_API int duda_cookie_set_signed_sized(struct duda_ctx *d, const struct mk_cookie *cookie,
                                        size_t cookie_size) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_cookie_set_signed(struct duda_ctx *d, const struct mk_cookie *cookie)
{
    return duda_cookie_set_signed_sized(d, cookie, sizeof *cookie);
}
MK_API int duda_cookie_set_encrypted_sized(struct duda_ctx *d, const struct mk_cookie *cookie,
                                           size_t cookie_size) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_cookie_set_encrypted(struct duda_ctx *d,
                                                            const struct mk_cookie *cookie)
{
    return duda_cookie_set_encrypted_sized(d, cookie, sizeof *cookie);
}
/**
 * Reads a signed cookie or an encrypted cookie; absent if there is none, if no key of the server verifies
 * it, or if it has expired.
 *
 *     int64_t id;
 *     mk_str cart = duda_cookie_signed(d, "cart");
 *     if (!cart.p)
 *         return duda_puts(d, "the cart is empty");
 *     if (!mk_num_parse_int(cart, &id))
 *         return 400;
 */
MK_API mk_str duda_cookie_signed(struct duda_ctx *d, const char *name);
MK_API mk_str duda_cookie_encrypted(struct duda_ctx *d, const char *name);

/* ---- Sessions ---- */

/**
 * A session stores named strings between the requests of one browser. The first duda_session_set() creates it
 * and sends a cookie with a random session ID. The session ends after `IdleTimeout` without a request, after
 * `AbsoluteTimeout` even if it is in use, or with duda_session_destroy(). A session ID that a client made up,
 * or that belongs to another service or virtual host, is never accepted (duda/scope.h explains how to share
 * sessions). When the session limit is reached, sessions without a login are evicted first. `Store` of
 * [SESSIONS] selects where sessions are kept: in `memory` shared by all workers, encrypted in the `cookie`,
 * or in the [KV] or [REDIS] section with the given Name (duda/store.h); duda_session_set_store() overrides
 * it. If requests of one session run concurrently, the last write wins.
 *
 *     static int log_in(struct duda_ctx *d)
 *     {
 *         if (!password_is_right(d))
 *             return 403;
 *         int e = duda_session_regenerate(d);
 *         if (!e)
 *             e = duda_session_set(d, "user", duda_form(d, "user"));
 *         return e ? e : duda_redirect(d, 303, MK_STR("/"));
 *     }
 *
 * duda_session_get() reads a value. Returns 0; -ENOENT: the session has no such value, or the client has no
 * session; or an error of the store. On error, *value is absent. If the store fails, the remaining
 * DUDA_BEFORE() functions and the handler are skipped. A handler that is already running continues, but the
 * client gets 503 whatever it returns, so an outage does not log users out.
 *
 *     mk_str user;
 *     int e = duda_session_get(d, "user", &user);
 *     if (e && e != -ENOENT)
 *         return e;
 */
MK_API int duda_session_get(struct duda_ctx *d, const char *name, mk_str *value) MK_API_MUST_USE;
/** Sets a value; an absent value removes it. May wait. Returns 0; -EINVAL: the name begins with the byte 1,
 * which Duda reserves; -EMSGSIZE: the name is longer than 128 bytes, or the session would exceed
 * DUDA_SESSION_MAX or 64 values; -EDQUOT: the client has created too many sessions (`MaxSessions` of
 * [SESSIONS]); -EALREADY: the response has started, so the cookie cannot be set; -ESTALE: another request has
 * destroyed the session or replaced its ID since this request read it; -ENOMEM; -ENOTSUP; or an error of the
 * store. */
MK_API int duda_session_set(struct duda_ctx *d, const char *name, mk_str value) MK_API_MUST_USE;

/**
 * Store a struct in the session as JSON, and read it. The schema describes the struct (see duda/schema.h).
 * DUDA_SESSION_MAX limits the size of its JSON together with all other values of the session.
 *
 *     struct person person = {.age = 18};
 *     int e = duda_session_get_struct(d, "person", &person_schema, &person);
 *     if (e && e != -ENOENT)
 *         return e;
 *     person.age++;
 *     e = duda_session_set_struct(d, "person", &person_schema, &person);
 *
 * duda_session_set_struct() returns the results of duda_session_set(); -EINVAL: the struct does not match the
 * schema. duda_session_get_struct() returns the results of duda_session_get(); -EPROTO: the value does not
 * match the schema, for example because an earlier version of the service has stored it. Then remove the
 * value with duda_session_set(), or let the user log in again. Optional members that the value lacks are
 * unchanged; after an error the struct is partly written. Strings are valid until the handler returns. Both
 * return -EFAULT if the schema describes a struct of another size. duda_reason() describes -EMSGSIZE,
 * -EINVAL, -EPROTO and -EFAULT in the log.
 */
MK_API int duda_session_set_struct_checked(struct duda_ctx *d, const char *name,
                                           const struct duda_schema *schema, const void *object,
                                           size_t size) MK_API_MUST_USE;
MK_API int duda_session_get_struct_checked(struct duda_ctx *d, const char *name,
                                           const struct duda_schema *schema, void *out,
                                           size_t size) MK_API_MUST_USE;
#ifndef __cplusplus
/** Call the functions above with the size of the struct. */
#define duda_session_set_struct(d, name, schema, object)                                                     \
    duda_session_set_struct_checked(d, name, schema, object, sizeof *(object))
#define duda_session_get_struct(d, name, schema, out)                                                        \
    duda_session_get_struct_checked(d, name, schema, out, sizeof *(out))
#endif
/** Regenerates the session: replaces its session ID. Call it whenever privileges change, above all at login,
 * to prevent session fixation. The session then counts as logged in: sessions without a login are evicted
 * before it. If another request has destroyed the session in the meantime, or replaced its ID, an empty one
 * is created.
 *
 * In a store, the old ID becomes invalid at once. With `Store cookie`, it becomes invalid when the new cookie
 * is written, after the handler has returned and before the response is sent: it stays valid if the cookie
 * cannot be sent. Until then, another request may destroy the session or replace its ID; this request then
 * sends no cookie for it, and duda_session_set() returns -ESTALE. Only the user that this request has logged
 * in with duda_session_log_in(), and the values that it has set, remain, because they do not depend on the
 * old session.
 *
 * Returns the results of duda_session_set(). */
MK_API int duda_session_regenerate(struct duda_ctx *d) MK_API_MUST_USE;
/**
 * Destroys the session, for a logout. A copy of its cookie becomes useless, even with `Store cookie`: all
 * workers of this server remember the IDs of destroyed and replaced sessions until the cookie would reach its
 * idle timeout. This list holds 65536 IDs, is not shared with other machines, and is lost on restart. If a
 * copied cookie must never become valid again, keep sessions in a [KV] or [REDIS] store. When the list is
 * full, the IDs of sessions without a login (see duda_session_regenerate()) are evicted first, then those of
 * the client address that has the most IDs in the list.
 *
 *     int e = duda_session_destroy(d);
 *     return e ? e : duda_redirect(d, 303, MK_STR("/"));
 */
MK_API int duda_session_destroy(struct duda_ctx *d) MK_API_MUST_USE;
/** Sets *seconds to the time at which the session ends even if it is in use (`AbsoluteTimeout`), in seconds
 * since 1970. Let data that belongs to the session but is stored elsewhere expire at this time. Returns 0;
 * -ENOENT: the client has no session; or an error of the store. */
MK_API int duda_session_expires_at(struct duda_ctx *d, int64_t *seconds) MK_API_MUST_USE;

/* ---- Sessions of a user ---- */

/**
 * Logs a user in: regenerates the session ID, and binds the session to `user`, a permanent ID of up to
 * DUDA_SESSION_USER_MAX bytes, such as the primary key of a table. If another user was logged in, the data of
 * that session is deleted first. If several logins of one browser run concurrently, all of them succeed, and
 * one of them keeps the values of the old session. Returns 0; -EINVAL: `user` is empty or too long; or an
 * error of duda_session_set().
 *
 *     int e = duda_session_log_in(d, duda_form(d, "user"));
 *     return e ? e : duda_redirect(d, 303, MK_STR("/"));
 */
MK_API int duda_session_log_in(struct duda_ctx *d, mk_str user) MK_API_MUST_USE;
/**
 * Sets *user to the user that duda_session_log_in() has bound to the session; it is absent if no user is
 * logged in, and valid until the handler returns. Returns 0, or an error of the store, like
 * duda_session_get().
 *
 *     mk_str user;
 *     int e = duda_session_user(d, &user);
 *     if (e)
 *         return e;
 *     return user.p ? duda_printf(d, "hello %s\n", user.p) : 401;
 */
MK_API int duda_session_user(struct duda_ctx *d, mk_str *user) MK_API_MUST_USE;

/**
 * The functions below revoke the sessions of a user on all devices ("log out everywhere"). They accept any
 * user, so check first that the user of the current session may do this. A revoked session is invalid for all
 * later requests, and a concurrent request cannot restore it; only handlers that have already read their
 * session continue.
 *
 * They work with sessions in memory, in a [KV] or [REDIS] section, and in a store of
 * duda_session_set_store(). With `Store cookie` they return -ENOTSUP, because only the browsers then hold the
 * sessions. Sessions with a user cost one more read of the store per request. A Redis server must not evict
 * keys (`maxmemory-policy noeviction`), because a lost key could make revoked sessions valid again.
 *
 * duda_session_revoke_all() revokes all sessions of the user, including the current one.
 */
MK_API int duda_session_revoke_all(struct duda_ctx *d, mk_str user) MK_API_MUST_USE;
/**
 * Revokes all sessions of the logged-in user except the current one. Call this function when the user
 * changes the password. -ENOENT: no user is logged in.
 *
 *     int e = save_password(d, duda_form(d, "password"));
 *     e = e ? e : duda_session_revoke_others(d);
 *     return e ? e : duda_flash_redirect(d, "success", MK_STR("The password is changed."), MK_STR("/profile"));
 */
MK_API int duda_session_revoke_others(struct duda_ctx *d) MK_API_MUST_USE;
/** Revokes the session with this `id` from duda_session_list(). -ENOENT: the user has no such session. */
MK_API int duda_session_revoke(struct duda_ctx *d, mk_str user, mk_str id) MK_API_MUST_USE;

/**
 * Adds a name under which duda_session_find_user() finds the logged-in user, such as the ID of a session at a
 * login provider, which may later ask to end that session. The store keeps an alias as long as a session may
 * live. If another user has the alias, it moves to this user, so begin it with a prefix for its source:
 * "provider 7:". Returns 0; -ENOENT: no user is logged in; -EINVAL: the alias is empty; -ENOTSUP: see above;
 * or an error of duda_session_set().
 */
MK_API int duda_session_add_alias(struct duda_ctx *d, mk_str alias) MK_API_MUST_USE;
/**
 * Sets *user to the user with this alias; it is valid until the handler returns. Returns 0; -ENOENT: no user
 * has this alias; or an error as for duda_session_add_alias().
 *
 *     mk_str alias = duda_sprintf(d, "provider 7:%.*s", MK_STR_ARG(sid)), user;
 *     int e = duda_session_find_user(d, alias, &user); // the provider ends the session `sid`
 *     return e == -ENOENT ? 204 : e ? e : duda_session_revoke_all(d, user);
 */
MK_API int duda_session_find_user(struct duda_ctx *d, mk_str alias, mk_str *user) MK_API_MUST_USE;

/** Maximum length of a user ID; length of a session's public ID. */
enum { DUDA_SESSION_USER_MAX = 255, DUDA_SESSION_PUBLIC_ID_LEN = 16 };

/** A session in the list of a user. */
struct duda_session_info {
    mk_str id;            /**< public ID for duda_session_revoke(); not valid as a cookie */
    mk_str client_ip;     /**< client address of the login, or of a later request */
    mk_str user_agent;    /**< User-Agent of the same request, truncated; escape it in HTML */
    int64_t created_at;   /**< seconds since 1970 */
    int64_t last_used_at; /**< seconds since 1970; may be up to a minute too early */
    bool is_current;      /**< the session of this request */
    uint64_t reserved[4]; /**< for later releases */
};
/**
 * Lists the sessions of a user, the most recently used first, for a page that shows the user's devices. The
 * array is valid until the handler returns. The list holds at least 12 sessions; when it is full, the least
 * recently used session is removed from the list. Such a session stays valid, but duda_session_revoke_all()
 * and duda_session_revoke_others() revoke it, too. Returns the errors of the functions above.
 *
 *     const struct duda_session_info *sessions;
 *     mk_str user;
 *     size_t n;
 *     int e = duda_session_user(d, &user);
 *     e = e ? e : duda_session_list(d, user, &sessions, &n);
 *     for (size_t i = 0; !e && i < n; i++)
 *         e = duda_printf(d, "%s %s%s\n", sessions[i].client_ip.p, sessions[i].user_agent.p,
 *                         sessions[i].is_current ? " (this device)" : "");
 */
MK_API int duda_session_list(struct duda_ctx *d, mk_str user, const struct duda_session_info **sessions,
                             size_t *n) MK_API_MUST_USE;

/* ---- Flash messages ---- */

/** A flash message. */
struct duda_flash_message {
    const char *category; /**< "error", "success" or any other name; "" if none */
    mk_str text;          /**< escape it in HTML */
    uint64_t reserved[2]; /**< for later releases */
};
/** Maximum number of messages that wait to be shown; further ones replace the oldest. */
enum { DUDA_FLASH_MAX = 8 };

/**
 * Stores a flash message for this browser: the next handler that calls duda_flash_take(), typically the one
 * for the page to which this handler redirects, shows it. The message expires after 5 minutes. Creates a
 * session if there is none. If there are already DUDA_FLASH_MAX messages, or the session is full, the message
 * replaces the oldest ones. Returns 0; -EINVAL: the text is absent; -EMSGSIZE: the message would not fit even
 * without the others, which are then kept (with `Store cookie`, the other data of the session also takes
 * space); or an error of duda_session_set().
 *
 *     int e = duda_flash(d, "success", MK_STR("Your changes are saved."));
 *     return e ? e : duda_redirect(d, 303, MK_STR("/profile"));
 */
MK_API int duda_flash(struct duda_ctx *d, const char *category, mk_str text) MK_API_MUST_USE;
/** Stores a flash message, and redirects with status 303, as is usual after a form. Returns an error of
 * duda_flash(), or the result of duda_redirect().
 *
 *     return duda_flash_redirect(d, "success", MK_STR("Your changes are saved."), MK_STR("/profile"));
 */
MK_API int duda_flash_redirect(struct duda_ctx *d, const char *category, mk_str text,
                               mk_str url) MK_API_MUST_USE;
/**
 * Returns all flash messages in order, and deletes them: each message is returned once, even if several
 * requests call this function at the same time. With `Store cookie`, however, concurrent requests that carry
 * the same cookie may all get the messages. The array is valid until the handler returns.
 *
 *     const struct duda_flash_message *messages;
 *     size_t n;
 *     int e = duda_flash_take(d, &messages, &n);
 *     for (size_t i = 0; !e && i < n; i++)
 *         e = duda_printf(d, "%s: %s\n", messages[i].category, messages[i].text.p);
 */
MK_API int duda_flash_take(struct duda_ctx *d, const struct duda_flash_message **messages,
                           size_t *n) MK_API_MUST_USE;

/** Maximum size of a session; length of a session ID as text; size of a store's secret. */
enum { DUDA_SESSION_MAX = 2800, DUDA_SESSION_ID_LEN = 64, DUDA_SESSION_SECRET_SIZE = 32 };

/** A session store, such as a database. Each function may wait, and returns 0 or a negative errno value. `id`
 * has DUDA_SESSION_ID_LEN hexadecimal digits. It is a hash of the session ID in the cookie, so a copy of the
 * database cannot be used to hijack sessions. Duda also stores other records there, under IDs of the same
 * form: the list of a user's sessions, and flash messages. */
struct duda_session_store {
    /** Loads the data that save() stored; *out lives until the handler returns. -ENOENT: no such session. */
    int (*load)(struct duda_ctx *d, mk_str id, mk_str *out);
    /** Stores the data, which expires after `seconds` seconds. */
    int (*save)(struct duda_ctx *d, mk_str id, mk_str data, uint32_t seconds);
    /** Deletes the session. -ENOENT: no such session. */
    int (*destroy)(struct duda_ctx *d, mk_str id);
    /** Replaces the data of an existing session, atomically; -ENOENT if there is none. A session that one
     * request destroys is therefore not recreated by the save of a concurrent request. NULL: save() is called
     * instead, without this guarantee. */
    int (*replace)(struct duda_ctx *d, mk_str id, mk_str data, uint32_t seconds);
    /** Returns a secret that the store keeps with the sessions and that is the same for all servers that use
     * the store. It authenticates records when no keys are configured (`KeyFile`, `DUDA_KEYS`). If `is_fresh`
     * is true, the function must not return a copy that this worker has cached. NULL: the server
     * authenticates records with its own key, and sessions end when the server stops. */
    int (*key)(struct duda_ctx *d, bool is_fresh, unsigned char secret[DUDA_SESSION_SECRET_SIZE]);
    uint64_t reserved[4]; /**< must be zero */
};
/**
 * Sets the session store of the service; call it in a DUDA_START() function. In a package, it sets the store
 * of all services that have not set their own. `store` must live as long as the worker.
 *
 *     static const struct duda_session_store store = {.load = load_session, .save = save_session, .destroy = delete_session};
 *     static int start(struct mk_worker *worker)
 *     {
 *         duda_session_set_store(worker, &store);
 *         return 0;
 *     }
 */
MK_API void duda_session_set_store(struct mk_worker *worker, const struct duda_session_store *store);
/** For packages: the Name of the configured session store; absent: sessions are in memory or in cookies. */
MK_API mk_str duda_session_store_name(struct mk_worker *worker);

/* ---- CSRF protection ---- */

/**
 * Returns a CSRF token for a form. In a template, put the value `@csrf_token` into a hidden field instead:
 * `<input type=hidden name=csrf_token value="{{@csrf_token}}">`. Scripts send the token as `X-CSRF-Token`. A
 * cookie binds the token to the browser, and every call encodes the token differently. Absent if memory is
 * exhausted or the response has started.
 *
 *     return duda_printf(d, "<form method=post><input type=hidden name=csrf_token value=\"%s\">...",
 *                        duda_csrf_token(d).p);
 */
MK_API mk_str duda_csrf_token(struct duda_ctx *d) MK_API_MUST_USE;
/**
 * Protects against cross-site request forgery, as DUDA_BEFORE(duda_csrf_check) or in a handler. Returns
 * DUDA_NEXT if the request comes from one of the service's own pages, or if its method is GET, HEAD or
 * OPTIONS, which change nothing. Return any other result from the handler: the client gets problem details
 * with status 403 if the browser reports a cross-site request (`Sec-Fetch-Site`, `Origin`), or if the token
 * is missing or wrong. Unless the request has the header X-CSRF-Token, the function reads the form; call
 * duda_form_load() first if the default limits do not fit.
 *
 *     DUDA_SERVICE(shop, DUDA_BEFORE(duda_csrf_check), DUDA_POST("/orders", create_order, "Creates an order."));
 */
MK_API duda_verdict duda_csrf_check(struct duda_ctx *d) MK_API_MUST_USE;

#ifdef __cplusplus
}

template <typename type>
static inline MK_API_MUST_USE int duda_session_set_struct(struct duda_ctx *d, const char *name,
                                                          const struct duda_schema *schema,
                                                          const type *object)
{
    return duda_session_set_struct_checked(d, name, schema, object, sizeof *object);
}
template <typename type>
static inline MK_API_MUST_USE int duda_session_get_struct(struct duda_ctx *d, const char *name,
                                                          const struct duda_schema *schema, type *out)
{
    return duda_session_get_struct_checked(d, name, schema, out, sizeof *out);
}
#endif

#endif
