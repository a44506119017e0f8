/* SPDX-License-Identifier: Apache-2.0 */
/* What a service keeps of a visitor: cookies, sessions, and tokens against forged forms. */
#ifndef DUDA_SESSION_H
#define DUDA_SESSION_H

#include <duda/cookie.h>
#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A NUL follows each text that these functions hand out. */

/* ---- Cookies ---- */

/** The value of the first cookie of that name; absent if there is none. */
MK_API mk_str duda_cookie(struct duda_ctx *d, const char *name);
/** Sets a cookie (see duda_cookie_write()): `Secure` over TLS, `HttpOnly`, `SameSite=Lax`. 0; -EINVAL: the
 * cookie is against the rules; -EPERM: Duda itself uses a cookie of that name; -EALREADY: the response has begun; -ENOMEM.
 *
 * Names of Duda are `SCOPE-session` and `SCOPE-token` of all services of the server (duda/scope.h), with or without `__Host-` or
 * `__Secure-` in front. No function sets or deletes them, duda_header_set() and duda_header_add() included: a client that may name a
 * cookie could plant its own session in the browser of another user. The error log names the cookie.
 *
 *     int e = duda_cookie_set(d, &(struct duda_cookie){.name = "theme", .value = MK_STR("dark")});
 */
MK_API int duda_cookie_set(struct duda_ctx *d, const struct duda_cookie *cookie) MK_API_MUST_USE;
/** The client forgets the cookie of that name and of path "/". -EPERM as above. */
MK_API int duda_cookie_delete(struct duda_ctx *d, const char *name) MK_API_MUST_USE;

/**
 * Cookies that clients cannot change (signed: HMAC-SHA-256), or neither read nor change (sealed:
 * AES-256-GCM). The value may be any bytes. They end with `max_age` whatever the client does, are bound to
 * their name, to the service and its virtual host (duda/scope.h tells how to share them), and to the keys of the server (`KeyFile` of [SESSIONS], or `DUDA_KEYS` in the environment; else
 * the server makes one that lives as long as its master). -ENOTSUP: Monkey was built without OpenSSL; else as duda_cookie_set().
 */
MK_API int duda_cookie_set_signed(struct duda_ctx *d, const struct duda_cookie *cookie) MK_API_MUST_USE;
MK_API int duda_cookie_set_encrypted(struct duda_ctx *d, const struct duda_cookie *cookie) MK_API_MUST_USE;
/** Their values; absent if there is none, or it is not of any of our keys, or over. */
MK_API mk_str duda_cookie_signed(struct duda_ctx *d, const char *name);
MK_API mk_str duda_cookie_encrypted(struct duda_ctx *d, const char *name);

/* ---- Sessions ---- */

/**
 * A session: texts by name that are kept between the requests of one browser. It begins with the first
 * duda_session_set(), which gives the client a cookie with a random number, and ends after `IdleTimeout` without a
 * request, after `AbsoluteTimeout` in any case, or by duda_session_destroy(). A number that a client has made up is never
 * taken, nor is one of another service or virtual host (duda/scope.h tells how to share sessions). When there are too many,
 * those of visitors who have not logged in go first. Where sessions are is decided by `Store` of [SESSIONS]: `memory` of all workers together, sealed in
 * the `cookie`, or in the [KV] or [REDIS] of that Name (duda/store.h); or by duda_session_set_store(). Requests of
 * one session at the same time: the last one to set wins.
 *
 *     static int log_in(struct duda_ctx *d)
 *     {
 *         if (!password_is_right(d))
 *             return 403;
 *         int e = duda_session_regenerate(d);
 *         if (!e)
 *             e = duda_session_set(d, "user", duda_form(d, "user"));
 *         return e ? e : duda_redirect(d, 303, "/");
 *     }
 *
 * If the store of sessions does not answer, duda_session_get() answers that there is no such text, as for a client that has not
 * logged in; but guards that follow and the handler do not run, and whatever the handler returns, the client gets 503.
 */
MK_API mk_str duda_session_get(struct duda_ctx *d, const char *name) MK_API_MUST_USE;
/** Sets a text, or removes it (absent). May wait. 0; -E2BIG: the session would be larger than
 * DUDA_SESSION_MAX; -EDQUOT: the client has begun too many (`MaxSessions` of [SESSIONS]); -EALREADY: the response has begun, so the cookie cannot be set; -ESTALE: another request
 * has ended the session since this one looked at it, or has given it a new number; -ENOMEM; -ENOTSUP; or what
 * the store answers. */
MK_API int duda_session_set(struct duda_ctx *d, const char *name, mk_str value) MK_API_MUST_USE;
/** Gives the session a new number, and drops the old one. Do so whenever rights change: at log-in above all. A
 * session that was renewed counts as that of a known visitor: others give way to it.
 * If another request has ended the session meanwhile, an empty one begins. */
MK_API int duda_session_regenerate(struct duda_ctx *d) MK_API_MUST_USE;
/**
 * Drops the session: log-out. A copy of its cookie is worth nothing, also with `Store cookie`: all workers of this
 * server remember the numbers of sessions that were ended or renewed until the cookie would be idle for too long. They
 * remember 65536 of them, do not tell other machines, and forget them when the server is restarted; where a copied
 * cookie must never be good again, keep sessions in a [KV] or [REDIS]. If there are more, sessions without a log-in
 * (duda_session_regenerate()) are forgotten first, then those of the address that has ended most.
 */
MK_API int duda_session_destroy(struct duda_ctx *d) MK_API_MUST_USE;

/** The bytes of a session, of a session's number as text, and of the secret of a store. */
enum { DUDA_SESSION_MAX = 2800, DUDA_SESSION_ID = 64, DUDA_SESSION_SECRET = 32 };

/** A place for sessions, such as a database. Each function may wait, and answers 0 or a negated errno value. `id` has DUDA_SESSION_ID
 * hexadecimal digits. It is a hash of the number in the cookie, so a copy of the database opens no session. */
struct duda_session_store {
    /** What save() was given; *out lives until the handler returns. -ENOENT: there is none. */
    int (*load)(struct duda_ctx *d, mk_str id, mk_str *out);
    /** Keeps it for so many seconds. */
    int (*save)(struct duda_ctx *d, mk_str id, mk_str data, uint32_t seconds);
    /** -ENOENT: there is none. */
    int (*drop)(struct duda_ctx *d, mk_str id);
    /** As save(), but only if there is one with that number: -ENOENT otherwise, in one step. So a session
     * that one request ends does not come back when another one that waited saves it. NULL: save() is
     * called, and it may come back. */
    int (*replace)(struct duda_ctx *d, mk_str id, mk_str data, uint32_t seconds);
    /** A secret that is kept beside the sessions, the same for all who use them: it proves records where no keys are
     * configured (`KeyFile`, `DUDA_KEYS`). `is_fresh`: what this worker remembers of it may be outdated. NULL: then
     * records are proven by a key that lives as long as the server, and sessions end with it. */
    int (*key)(struct duda_ctx *d, bool is_fresh, unsigned char secret[DUDA_SESSION_SECRET]);
};
/** Sessions of the service are there from now on: call it in a DUDA_START() function. Elsewhere, for packages: those
 * of all services that have no store of their own. `store` must live as long as the worker. */
MK_API void duda_session_set_store(struct mk_worker *worker, const struct duda_session_store *store);
/** For packages: the Name of the store that the configuration wants; absent: sessions are in memory or in
 * cookies. */
MK_API mk_str duda_session_store_name(struct mk_worker *worker);

/* ---- Forged forms ---- */

/**
 * A token for a form of ours: put it into a hidden field `_token`, or let a script send it as `X-CSRF-Token`.
 * It belongs to the browser by a cookie, and looks different each time. Absent when memory is out or the
 * response has begun.
 *
 *     {"token", duda_value_text(duda_csrf_token(d))}    ...    <input type="hidden" name="_token"
 * value="{{token}}">
 */
MK_API mk_str duda_csrf_token(struct duda_ctx *d) MK_API_MUST_USE;
/**
 * Was the request caused by a page of ours? For DUDA_BEFORE(duda_csrf_check), or in a handler. DUDA_NEXT: it was, or it is
 * a GET, HEAD or OPTIONS, which change nothing. Else what the handler returns: problem details with status
 * 403, if the browser says that another site has caused it (`Sec-Fetch-Site`, `Origin`), or the token is
 * missing or wrong. Reads the form, so load it before if its limits are not the defaults.
 */
MK_API int duda_csrf_check(struct duda_ctx *d) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
