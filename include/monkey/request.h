/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: everything that is known of one, its content, and what is kept with it. */
#ifndef MONKEY_REQUEST_H
#define MONKEY_REQUEST_H

#include <monkey/addr.h>
#include <monkey/http.h>
#include <monkey/log.h>
#include <monkey/str.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A request: frozen once a handler sees it, the same over every version of HTTP.
 *
 * Text returned by these functions lives as long as the request. Call them only in the worker that serves the
 * request, from a hook, a handler or a source, unless stated otherwise.
 */
struct mk_request;
struct mk_file_id;
struct mk_vhost;
struct mk_plugin;
struct mk_worker;

/** The method; MK_METHOD_UNKNOWN for one that is not in the enum (see mk_request_method_text()). */
MK_API enum mk_method mk_request_method(const struct mk_request *r);
MK_API mk_str mk_request_method_text(const struct mk_request *r);
/** The name of mk_request_method(): what the client sent, but "GET" for a request that has become one. */
MK_API mk_str mk_request_method_name(const struct mk_request *r);

/** The version as major * 10 + minor: 10, 11, 20. */
MK_API unsigned mk_request_version(const struct mk_request *r);

/** The request target as it came (RFC 9112, section 3.2). */
MK_API mk_str mk_request_target(const struct mk_request *r);

/** Path and query of what is asked for now, as they are to be sent on to another server: undecoded, with the
 * changes of rewrites, never with scheme and authority. "*" for OPTIONS *; absent for CONNECT, or when memory
 * is out.
 *
 * It is as the client wrote it but for what other programs might read otherwise: dot segments are resolved,
 * backslashes escaped, and several slashes at the beginning are one. `/%62` and inner repeated slashes stay. */
MK_API mk_str mk_request_raw_target(const struct mk_request *r);

/** The same for what the client has asked for, without the changes of rewrites: REQUEST_URI of CGI. */
MK_API mk_str mk_request_uri(const struct mk_request *r);

/** The path, decoded once, without dot segments and doubled slashes; begins with '/', holds no NUL and ends
 * with one that does not count. "*" for OPTIONS *. */
MK_API mk_str mk_request_path(const struct mk_request *r);

/** The paths that the request has asked for, each as mk_request_path(): 0 is the one that was received, then
 * come those that rewrites, index files and fallbacks made of it; the last is mk_request_path(). Absent (p ==
 * NULL) beyond that. A hook that guards paths judges all of them. */
MK_API mk_str mk_request_path_at(const struct mk_request *r, size_t i);

/**
 * Other paths that a program may take mk_request_path() for: with %2F and backslashes as separators, without
 * path parameters (`;x`) and without blanks and dots at the end of names, decoded twice, and more, and all of these
 * together; what follows a script (`/index.php/admin`); and the path of a `Destination` (RFC 4918). A variant may
 * have a NUL in it. Nearly every path has none. A hook that refuses, counts or asks for a password judges each of
 * them as it judges the path, and applies the strictest result: a program behind this server reads the path by its
 * own rules.
 *
 * *list is valid until the request ends. 0, or the status to refuse the request with: 400 for a path with too
 * many variants or a malformed Destination, 414 for a path of more than 2 KB that has variants, 503 when memory is
 * out; then *n is 0.
 *
 *     const mk_str *variants;
 *     size_t n;
 *     unsigned status = mk_request_variants(request, &variants, &n);
 *     if (status)
 *         return refuse(response, status);
 *     bool covers = is_protected(mk_request_path(request));
 *     for (size_t i = 0; i < n && !covers; i++)
 *         covers = is_protected(variants[i]);
 */
MK_API unsigned mk_request_variants(const struct mk_request *r, const mk_str **list,
                                    size_t *n) MK_API_MUST_USE;

/** Why a path is a variant. */
enum mk_variant {
    MK_VARIANT_READING,      /**< of the whole path */
    MK_VARIANT_AFTER_SCRIPT, /**< what a script gets for the rest of the path */
    MK_VARIANT_DESTINATION,  /**< where a COPY or MOVE leads */
};
/** For the i-th of the list that mk_request_variants() has just answered with. A rule that decides for the path itself too,
 * such as a last one for all paths, need not judge a variant of another kind than MK_VARIANT_READING. */
MK_API enum mk_variant mk_request_variant_kind(const struct mk_request *r, size_t i);

/** Where a COPY or MOVE leads. */
struct mk_destination {
    mk_str host; /**< without a port; absent if the client gave the path alone */
    mk_str path; /**< as mk_request_path(); absent: there is none */
    mk_str uri;  /**< path and query, as mk_request_raw_target() */
};
/** Reads the field Destination (RFC 4918, section 10.3). 0, or the status to refuse the request with: 400 when it is
 * malformed, unless the method is one of RFC 9110, for which the field means nothing; 503 when memory is out. */
MK_API unsigned mk_request_destination(const struct mk_request *r,
                                       struct mk_destination *out) MK_API_MUST_USE;

/** For a hook that cannot apply its strictest rule, because it decides where the request goes: a variant of
 * the path would have been judged otherwise. mk_request_check_path() answers 400 from then on. */
MK_API void mk_request_set_ambiguous(struct mk_request *r);

/**
 * From a handler that hands the path to another program: may it do so? 0; 400 when a variant of the path (see
 * mk_request_variants()) would not have come to the route of this handler, so that the program might answer
 * for what another route refuses, or has a segment of two dots; or as mk_request_variants(). Of what follows
 * a script, and of a Destination, only a route that refuses it counts. A handler that reads paths as this server does
 * need not ask.
 */
MK_API unsigned mk_request_check_path(struct mk_request *r) MK_API_MUST_USE;

struct mk_buf;
/** Writes a part of mk_request_path() for a URL. What a path may hold as it is (RFC 3986, section 3.3) is written
 * as the client did: `;` and `%3B` are not the same. A %2F stays one. Without memory, the buffer fails. */
MK_API void mk_request_encode_path(const struct mk_request *r, mk_str part, struct mk_buf *out);

/** What follows the '?', undecoded; absent (p == NULL) when there is no '?'. */
MK_API mk_str mk_request_query(const struct mk_request *r);

/** The host that the client asked for, without port; absent in HTTP/1.0 without Host. */
MK_API mk_str mk_request_host(const struct mk_request *r);

/** The value of the first field line of that name, ignoring case; absent if there is none. After a
 * handler's mk_request_rewrite() the request has no content, and no field that describes it (RFC 9110, section
 * 15.4). */
MK_API mk_str mk_request_header(const struct mk_request *r, mk_str name);

/** The i-th field line, from 0, in the order they came: true, with its name and value, which live as long as
 * the request. False when there are no more; then neither is set. */
MK_API bool mk_request_header_at(const struct mk_request *r, size_t i, mk_str *name, mk_str *value);

/** The party that may set the i-th field: mk_header_role() of its name, faster. */
MK_API enum mk_header_role mk_request_header_role(const struct mk_request *r, size_t i);

/** The client's address as text, without port. */
MK_API mk_str mk_request_client_text(struct mk_request *r);
/** The client's address. A hook that finds the client behind a proxy sets it for all later calls (0 or
 * -ENOMEM). */
MK_API const struct mk_addr *mk_request_client_addr(const struct mk_request *r);
MK_API int mk_request_set_client_addr(struct mk_request *r, const struct mk_addr *peer);
/** The local address of the connection. 0, or a negated errno value when there is none. */
MK_API int mk_request_local_addr(const struct mk_request *r, struct mk_addr *out);

/** "http" or "https": what the client speaks with this server, or with a trusted proxy in front of it. */
MK_API mk_str mk_request_scheme(const struct mk_request *r);
/** A trusted proxy has said whether its client speaks TLS with it. This decides the scheme from now on,
 * whatever the connection of the proxy is. Call it from a hook of MK_PRIORITY_ADDRESS or earlier: the hooks after
 * that order, RedirectToHTTPS and ClientAuthority then see it. */
MK_API void mk_request_set_secure(struct mk_request *r, bool is_secure);

/** Was a slash of the path escaped as %2F? It appears in the path as "%2F" and does not separate segments; a
 * handler that maps paths to files must refuse it. */
MK_API bool mk_request_has_encoded_slash(const struct mk_request *r);

/** The user that a hook has authenticated; absent if there is none. The text is copied: 0 or -ENOMEM. */
MK_API mk_str mk_request_user(const struct mk_request *r);
MK_API int mk_request_set_user(struct mk_request *r, mk_str user);

/** The host that serves the request; NULL if it failed before the host was known. */
MK_API const struct mk_vhost *mk_request_vhost(const struct mk_request *r);
/**
 * Tells the virtual hosts of a server apart, for state that must not pass from one to another: the first
 * ServerName of the host, with its ports if another [HOST] has that name, too. If only a pattern such as
 * `*.example.org` names the host that the client asked for, that host in lower case and a blank are in front. The same
 * after a reload, and on other machines with this configuration. Absent when memory is out.
 */
MK_API mk_str mk_request_vhost_name(struct mk_request *r);
/** A server in front of this one has said it. The text is copied: 0 or -ENOMEM. */
MK_API int mk_request_set_vhost_name(struct mk_request *r, mk_str name);
/** The pattern of the route whose handler was called, as written in [ROUTES]. */
MK_API mk_str mk_request_route(const struct mk_request *r);
/** The worker that serves it. */
MK_API struct mk_worker *mk_request_worker(const struct mk_request *r);
/** When it came in: seconds since 1970. */
MK_API int64_t mk_request_time(const struct mk_request *r);

/**
 * Only from on_request or a handler: the request becomes one for another path. `target` is a path with an
 * optional '?' and query, as a client would write it. Answer MK_REWRITTEN: hooks that follow with an order
 * below MK_PRIORITY_NORMAL judge the old path first; then the server empties the response and calls all hooks
 * again, for the new path. After 10 rewrites the client gets a 500. Answers 0, -EINVAL when the target is not
 * valid, or -ENOMEM.
 *
 * From a handler the request also becomes a GET (a HEAD stays one) without content, and mk_request_data() is
 * NULL again. mk_request_method_text() and mk_request_target() always tell what the client sent.
 */
MK_API int mk_request_rewrite(struct mk_request *r, mk_str target);

/**
 * Opens a path beneath the document root (or a user's folder), following links as configured. Returns a
 * descriptor for reading, which the caller closes, or a negated errno value. `path` has the form of
 * mk_request_path() (-EINVAL otherwise, for example with `..`) and may lead to a folder. May wait for a disk.
 */
MK_API int mk_request_open(const struct mk_request *r, mk_str path);
/** What a path leads to. */
enum mk_file_kind { MK_FILE_REGULAR, MK_FILE_FOLDER, MK_FILE_OTHER };
/**
 * What is at a path beneath the document root (or a user's folder, or an Alias), following links as
 * configured: an enum mk_file_kind, or a negated errno value, as by mk_request_open() (-ENOTDIR for a file
 * whose path ends with a slash). *id says which file it is, how large, and when it was modified; NULL if it
 * does not matter.
 *
 * The answer comes from the cache of open files, without a system call, and is trusted for `OpenFileCacheTTL`.
 * What is not cached is opened; what is not there is not remembered.
 *
 *     struct mk_file_id id;
 *     if (mk_request_stat(request, mk_request_path(request), &id) == MK_FILE_REGULAR && id.size < 1000)
 */
MK_API int mk_request_stat(const struct mk_request *r, mk_str path, struct mk_file_id *id);
/**
 * The script that the path of the request leads to: its first part, from the left, that is a regular file
 * beneath the document root, as mk_request_stat() finds it, and ends with `extension`, if that is not empty.
 * *info is the rest of the path. A path that goes through another file leads to no script, so
 * nothing else is ever run; a hidden file is none unless such files are shown. 0, or the status that the
 * request deserves: 404 if there is none; then *name is what was looked for, or absent if no part has that
 * extension.
 *
 *     mk_str script, info;
 *     unsigned status = mk_request_find_script(request, MK_STR(".lua"), &script, &info);
 */
MK_API unsigned mk_request_find_script(const struct mk_request *r, mk_str extension, mk_str *name,
                                       mk_str *info);
/** The absolute file name of a path, whether or not it exists; NUL-terminated. Absent when memory is out, the
 * host has no root, or the path is invalid. */
MK_API mk_str mk_request_translate_path(const struct mk_request *r, mk_str path);
/** May names that begin with a dot be served here? */
MK_API bool mk_request_shows_dot_files(const struct mk_request *r);
/** The media type of a file of that name, for this host. */
MK_API mk_str mk_request_media_type(const struct mk_request *r, mk_str file_name);

/** The client's preference for a content coding ("gzip") or a media type ("text/html"), in thousandths; 0:
 * not acceptable (RFC 9110, sections 12.5.1 and 12.5.3). */
MK_API unsigned mk_request_accepts_coding(const struct mk_request *r, mk_str coding);
MK_API unsigned mk_request_accepts_type(const struct mk_request *r, mk_str type);

/** For the error log of the request's host; says which request it is about. */
MK_API void mk_request_log(struct mk_request *r, enum mk_log_level level, const char *fmt, ...)
    MK_API_PRINTF(3, 4);
/**
 * A copy of what logs say of the request (host, method, target, address), for mk_request_log() after its end:
 * output that comes late then goes to the log of the same host. Nothing else may be called with it. NULL when
 * memory is out. Ends with mk_request_log_copy_free() (NULL is fine), in worker_stop at the latest.
 */
MK_API struct mk_request *mk_request_log_copy(const struct mk_request *r) MK_API_MUST_USE;
MK_API void mk_request_log_copy_free(struct mk_request *remembered);
/** For `monkey explain`: one step that decided something. Does nothing for a request of a client. */
MK_API void mk_request_explain(struct mk_request *r, const char *what, const char *fmt, ...)
    MK_API_PRINTF(3, 4);

/** Length of the content: 0 when there is none, -1 when it is unknown until the end. */
MK_API int64_t mk_request_length(const struct mk_request *r);

/**
 * Reads the next bytes of the content (its transfer coding removed).
 *
 * Answers how many bytes it wrote to `room` (`cap` is at least 1); 0 at the end of the content; -EAGAIN when
 * nothing has arrived yet: return MK_WAIT from the handler or -EAGAIN from the source, and it is called again
 * when there is more. -EMSGSIZE: larger than the limit (the answer should be 413); -EBADMSG: malformed (400);
 * -ECONNRESET: the client went away.
 *
 * The server reads from the client only what is requested here. The first call sends the `100 Continue` that
 * a client with `Expect: 100-continue` waits for (RFC 9110, section 10.1.1).
 *
 *     char room[4096];
 *     ssize_t n;
 *     while ((n = mk_request_read(request, room, sizeof room)) > 0)
 *         consume(room, (size_t)n);
 *     if (n == -EAGAIN)
 *         return MK_WAIT;
 */
MK_API ssize_t mk_request_read(struct mk_request *r, char *room, size_t cap);

/**
 * The trailers of the request (RFC 9110, section 6.5), available once mk_request_read() has returned 0. The
 * value of the first one of that name, ignoring case, absent if there is none; or the i-th one, false when
 * there are no more. Fields that would change the meaning of the request (Content-Length, Authorization, ...)
 * are dropped.
 */
MK_API mk_str mk_request_trailer(const struct mk_request *r, mk_str name);
MK_API bool mk_request_trailer_at(const struct mk_request *r, size_t i, mk_str *name, mk_str *value);

/** Does the client accept trailers (`TE: trailers`, RFC 9110, section 10.1.4)? */
MK_API bool mk_request_accepts_trailers(const struct mk_request *r);

/**
 * Resumes a request whose handler returned MK_WAIT, or whose source returned -EAGAIN: the server calls that
 * handler or source again, at the end of the current loop iteration. Harmless when nothing waits.
 */
MK_API void mk_request_resume(struct mk_request *r);

/**
 * From here on the request ends as soon as the client closes its side of the connection while the handler
 * waits for something other than input. Without this, the server treats such a client as still listening (a
 * half-closed connection, RFC 9112, section 9.6), and detects that it has gone only when it sends something.
 * Has no effect in a tunnel: use mk_request_read() there.
 */
MK_API void mk_request_cancel_on_disconnect(struct mk_request *r);

/**
 * Limits of this request alone, in place of `HandlerTimeout` (how long a handler or source may wait for
 * something other than the client) and `TunnelTimeout` of its path. 0 is no limit; a day is the
 * longest. They hold for waits that begin after the call. 0 or -ENOMEM.
 *
 * A source of events that may be silent for long asks for a wait without limit. Such a wait ends when the
 * client closes its side, as with mk_request_cancel_on_disconnect().
 */
MK_API int mk_request_set_handler_timeout(struct mk_request *r, uint32_t ms);
MK_API int mk_request_set_tunnel_timeout(struct mk_request *r, uint32_t ms);
/** The same for `MaxBodySize`, from on_request. It can only be lowered: longer content was refused before any
 * hook, unless a handler raises the limit (mk_handler.body_max), which also wins over this one. UINT64_MAX:
 * no limit. -EMSGSIZE: the content is longer than that, answer 413. */
MK_API int mk_request_set_body_max(struct mk_request *r, uint64_t bytes);
/** The limit that holds for the content of the request; UINT64_MAX: none. */
MK_API uint64_t mk_request_body_max(struct mk_request *r);

/** `size` bytes that live as long as the request, aligned for any type; NULL when memory is out. */
MK_API void *mk_request_alloc(struct mk_request *r, size_t size);

/** Calls fn(data) when the request ends, however it ends. 0, or -ENOMEM: then it will not be called. */
MK_API int mk_request_add_cleanup(struct mk_request *r, void (*fn)(void *data), void *data);

/** Attaches data to the request under `key`, an address that belongs to the caller, usually its mk_plugin.
 * When the request ends, `free` (may be NULL) gets the data, even if other data was attached later. 0, or
 * -ENOMEM: then `free` was called at once. */
MK_API int mk_request_attach(struct mk_request *r, const void *key, void *data, void (*free)(void *data));
/** NULL when nothing is attached. */
MK_API void *mk_request_attached(const struct mk_request *r, const void *key);

/** One pointer for the handler that owns the request; NULL at first. */
MK_API void mk_request_set_data(struct mk_request *r, void *data);
MK_API void *mk_request_data(const struct mk_request *r);

#ifdef __cplusplus
}
#endif

#endif
