/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: their metadata, body and attached data. */
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
 * A request. It is immutable once a handler sees it, and looks the same in every version of HTTP.
 *
 * Strings that these functions return live as long as the request. Call the functions only in the worker that
 * serves the request, from a hook, a handler or a body source, unless stated otherwise.
 */
struct mk_request;
struct mk_file_id;
struct mk_logfile;
struct mk_vhost;
struct mk_plugin;
struct mk_worker;

/** The method; MK_METHOD_UNKNOWN if it is not in the enum (see mk_request_method_text()). */
MK_API enum mk_method mk_request_method(const struct mk_request *request);
/** The method as the client sent it. */
MK_API mk_str mk_request_method_text(const struct mk_request *request);
/** The name of the method: as the client sent it, or "GET" if a rewrite turned the request into a GET. */
MK_API mk_str mk_request_method_name(const struct mk_request *request);

/** The HTTP version as major * 10 + minor: 10, 11, 20. */
MK_API unsigned mk_request_version(const struct mk_request *request);

/**
 * The request target as received (RFC 9112, section 3.2).
 *
 *     mk_str target = mk_request_target(request); // "/a%20b?x=1"
 */
MK_API mk_str mk_request_target(const struct mk_request *request);

/**
 * The current path and query in the form to forward to another server: undecoded, after rewrites, always
 * without scheme and authority. "*" for OPTIONS *. Absent for CONNECT, or if out of memory.
 *
 * The text is normalized only where other programs might read it differently: dot segments are resolved,
 * backslashes escaped, and multiple leading slashes merged. `/%62`, and repeated slashes elsewhere, remain
 * unchanged.
 */
MK_API mk_str mk_request_raw_target(const struct mk_request *request);

/** The original path and query, before rewrites, in the same form; CGI programs get it as REQUEST_URI. */
MK_API mk_str mk_request_uri(const struct mk_request *request);

/** The path, decoded once, without dot segments or repeated slashes. It starts with '/', contains no
 * NUL, and is NUL-terminated. "*" for OPTIONS *. */
MK_API mk_str mk_request_path(const struct mk_request *request);

/** The i-th path of the request, in the form of mk_request_path(). Index 0 is the received path;
 * rewrites, index files and fallbacks add more, and the last one is mk_request_path(). Absent (p == NULL)
 * beyond the last. A hook that protects paths must check all of them. */
MK_API mk_str mk_request_path_at(const struct mk_request *request, size_t i);

/**
 * Returns the path variants: other paths that a backend may derive from mk_request_path(). A backend may
 * treat %2F and backslashes as separators, remove path parameters (`;x`), remove trailing blanks and dots
 * from names, decode twice, or combine such rules. Further variants are the path after a script
 * (`/index.php/admin`) and the path of a `Destination` (RFC 4918). A variant may contain NUL bytes. Nearly
 * all paths have no variants. A hook that denies, counts or requires a password must check each variant in
 * the same way as the path and apply the strictest result, because the hook cannot know how the backend
 * parses the path.
 *
 * *list is valid until the request ends. Returns 0, or the status with which to reject the request; *n is
 * then 0. The status is 400 for a path with too many variants or for a malformed Destination, 414 for a path
 * of more than 2 KB that has variants, and 503 if out of memory.
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
MK_API unsigned mk_request_variants(const struct mk_request *request, const mk_str **list,
                                    size_t *n) MK_API_MUST_USE;

/** The origin of a path variant. */
enum mk_variant {
    MK_VARIANT_READING,      /**< an alternative reading of the whole path */
    MK_VARIANT_AFTER_SCRIPT, /**< the rest of the path, as passed to a script */
    MK_VARIANT_DESTINATION,  /**< the destination of a COPY or MOVE */
};
/** The origin of the i-th variant in the list that mk_request_variants() has just returned. A rule that also
 * applies to the path itself, such as a final catch-all rule, needs to check only variants of kind
 * MK_VARIANT_READING. */
MK_API enum mk_variant mk_request_variant_kind(const struct mk_request *request, size_t i);

/** The destination of a COPY or MOVE request. */
struct mk_destination {
    mk_str host; /**< without port; absent if the client sent only a path */
    mk_str path; /**< in the form of mk_request_path(); absent: no destination */
    mk_str uri;  /**< path and query, in the form of mk_request_raw_target() */
};
/** Parses the Destination header (RFC 4918, section 10.3). Returns 0, or the status with which to reject the
 * request: 400 if the header is malformed, unless the method is defined in RFC 9110, which assigns the header
 * no meaning; 503 if out of memory. */
MK_API unsigned mk_request_destination_sized(const struct mk_request *request, struct mk_destination *out,
                                             size_t out_size) MK_API_MUST_USE;
static inline MK_API_MUST_USE unsigned mk_request_destination(const struct mk_request *request,
                                                              struct mk_destination *out)
{
    return mk_request_destination_sized(request, out, sizeof *out);
}

/** Declares that the hook would have treated a path variant differently from the path. For hooks that cannot
 * apply the strictest result, because their rules decide where the request goes. mk_request_check_path()
 * returns 400 from then on. */
MK_API void mk_request_set_ambiguous(struct mk_request *request);

/**
 * Checks whether a handler may pass the path to another program. Returns 0 if so. Returns 400 if a path
 * variant (see mk_request_variants()) contains a `..` segment, or would have been routed to another handler:
 * the program might then serve a path that another route denies. In the path after a script and in a
 * Destination header, a variant that would reach another handler is rejected only if that route denies
 * access. Also returns the errors of mk_request_variants(). Handlers that read paths in the same way as this
 * server need no check.
 */
MK_API unsigned mk_request_check_path(struct mk_request *request) MK_API_MUST_USE;

struct mk_buf;
/** Encodes a part of mk_request_path() for use in a URL. Characters that are valid unescaped in a path (RFC
 * 3986, section 3.3) are written as the client sent them, because `;` and `%3B` differ. %2F stays %2F. If
 * memory runs out, `out` is marked as failed. */
MK_API void mk_request_encode_path(const struct mk_request *request, mk_str part, struct mk_buf *out);

/**
 * The query after the '?', undecoded; absent (p == NULL) if there is no '?'.
 *
 *     mk_str query = mk_request_query(request); // "page=2&q=tea", encoded
 */
MK_API mk_str mk_request_query(const struct mk_request *request);

/**
 * The host that the client requested, without port; absent in HTTP/1.0 without Host.
 *
 *     bool is_local = mk_str_eq_nocase(mk_request_host(request), MK_STR("localhost"));
 */
MK_API mk_str mk_request_host(const struct mk_request *request);

/**
 * The value of the first header with that name (case-insensitive); absent if there is none. After a handler
 * has called mk_request_rewrite(), the request has no body and no headers that describe it (RFC 9110, section
 * 15.4).
 *
 *     mk_str type = mk_request_header(request, MK_STR("Content-Type"));
 *     if (!mk_str_starts(type, MK_STR("image/"))) {
 *         mk_response_set_status(response, 415);
 *         return MK_ERROR;
 *     }
 */
MK_API mk_str mk_request_header(const struct mk_request *request, mk_str name);

/**
 * Returns the i-th header, from 0, in the order received; its name and value live as long as the
 * request. Returns false, and sets neither, if `i` is out of range.
 *
 *     mk_str name, value;
 *     for (size_t i = 0; mk_request_header_at(request, i, &name, &value); i++)
 *         mk_buf_addf(&out, "%.*s: %.*s\n", MK_STR_ARG(name), MK_STR_ARG(value));
 */
MK_API bool mk_request_header_at(const struct mk_request *request, size_t i, mk_str *name,
                                 mk_str *value) MK_API_MUST_USE;

/** The party that may set the i-th header. Same as mk_header_role() of its name, but faster. MK_ROLE_NONE if
 * `i` is out of range. */
MK_API enum mk_header_role mk_request_header_role(const struct mk_request *request, size_t i);

/**
 * Change the request headers that the functions above return, so that handlers, programs and backends see the
 * new ones. Call them from on_request or, if access checks must see the received headers, from on_handler.
 * mk_request_set_header() replaces all headers of that name, mk_request_add_header() adds one, and
 * mk_request_remove_header() removes all. Names that programs confuse with `name` count as the same name,
 * such as `X_Tenant` and `X-Tenant`. The role of a new header is MK_ROLE_SERVER: gateways forward it, even if
 * the client lists its name in Connection. Strings are copied. After a rewrite that calls the hooks again,
 * the request has the received headers again.
 *
 * Return 0; -EINVAL if `name` is not changeable (mk_request_header_is_changeable()) or the value contains a
 * control character; -E2BIG for more than 254 headers; or -ENOMEM. After an error, reject the request: a
 * header that the client forged may still be present.
 *
 *     if (mk_request_set_header(request, MK_STR("X-Tenant"), MK_STR("blue"))) // for the handler and backends
 *         return MK_ERROR;
 */
MK_API int mk_request_set_header(struct mk_request *request, mk_str name, mk_str value) MK_API_MUST_USE;
MK_API int mk_request_add_header(struct mk_request *request, mk_str name, mk_str value) MK_API_MUST_USE;
MK_API int mk_request_remove_header(struct mk_request *request, mk_str name) MK_API_MUST_USE;
/** Returns whether hooks may set (`removes` is false) or remove headers with this name. They may not change
 * headers that frame the message, belong to the connection, or that the server has already evaluated: Host,
 * Content-Length, Transfer-Encoding, Connection, Upgrade, TE, Expect, Max-Forwards, and the key of a
 * WebSocket handshake. Destination, Via, Client-Cert, `Proxy` and names with an underscore can only be
 * removed. */
MK_API bool mk_request_header_is_changeable(mk_str name, bool removes);
/** Has a hook set, added or removed headers of that name, or of a name that programs confuse with it, even if
 * the client had sent none? For handlers that forward trailers, which programs may treat as headers: such a
 * trailer must not be forwarded. May return false if the request cannot have trailers. */
MK_API bool mk_request_header_is_overridden(const struct mk_request *request, mk_str name);
/** Like mk_request_header(), but as the client sent it. For functions that serve the client rather than the
 * handler, such as compression and logs. */
MK_API mk_str mk_request_received_header(const struct mk_request *request, mk_str name);

/**
 * The client address as text, without port.
 *
 *     mk_request_log(request, MK_LOG_INFO, "hello, %.*s", MK_STR_ARG(mk_request_client_text(request)));
 */
MK_API mk_str mk_request_client_text(struct mk_request *request);
/** The client address: the peer of the connection, unless a hook has set another address. */
MK_API const struct mk_addr *mk_request_client_addr(const struct mk_request *request);
/** Sets the client address that all later calls return, for hooks that identify the client behind a proxy.
 * Returns 0 or -ENOMEM. */
MK_API int mk_request_set_client_addr(struct mk_request *request, const struct mk_addr *peer);
/** Stores the local address of the connection in *out. Returns 0, or a negative errno value if there is
 * none. */
MK_API int mk_request_local_addr(const struct mk_request *request, struct mk_addr *out) MK_API_MUST_USE;

/** "http" or "https": the scheme with which the client connects to this server, or to a trusted proxy. */
MK_API mk_str mk_request_scheme(const struct mk_request *request);
/** Sets the scheme that a trusted proxy reports: whether its client uses TLS to the proxy. This
 * overrides the scheme of the proxy's own connection. Call it from a hook with MK_PRIORITY_ADDRESS or a
 * lower priority value, so that hooks with higher priority values, RedirectToHTTPS and ClientAuthority use
 * the new scheme. */
MK_API void mk_request_set_secure(struct mk_request *request, bool is_secure);

/** Does the path contain an escaped slash (%2F)? It appears in the path as "%2F" and does not separate
 * segments. Handlers that map paths to files must reject it. */
MK_API bool mk_request_has_encoded_slash(const struct mk_request *request);

/**
 * The authenticated user, as set by a hook; absent if there is none. The setter copies the name, and
 * returns 0 or -ENOMEM.
 *
 *     if (knows_key(mk_request_header(request, MK_STR("X-Key"))))
 *         (void)mk_request_set_user(request, MK_STR("ana")); // for the access log and for backends
 */
MK_API mk_str mk_request_user(const struct mk_request *request);
MK_API int mk_request_set_user(struct mk_request *request, mk_str user);

/** The header that carries the request ID, to backends and to clients. */
#define MK_REQUEST_ID_HEADER "X-Request-Id"
/** The request ID, which identifies the request in logs and in other programs; NUL-terminated, and valid as
 * long as the request. If a trusted proxy has sent an X-Request-Id of 1 to 64 letters, digits, `.`, `_` and
 * `-`, it is the ID; otherwise the first call generates 32 random hexadecimal digits. From then on, all
 * messages in the error log about the request contain the ID. "-" if out of memory. */
MK_API mk_str mk_request_id(const struct mk_request *request);
/** Like mk_request_id(), and adds the ID to the line of the request in the access log, in any format.
 * mk_request_logs_id() returns whether this function was called. */
MK_API mk_str mk_request_log_id(struct mk_request *request);
MK_API bool mk_request_logs_id(const struct mk_request *request);
/** Has mk_request_id() been called for this request? */
MK_API bool mk_request_has_id(const struct mk_request *request);
/** Declares that the peer is a trusted proxy: the server uses its X-Request-Id. Call it from a hook with
 * MK_PRIORITY_ADDRESS or a lower priority value. */
MK_API void mk_request_trust_proxy(struct mk_request *request);
/** For handlers that pass the request to another program: replaces the client's X-Request-Id, traceparent and
 * tracestate headers with this server's own, if the request has an ID or a trace (monkey/trace.h). Headers
 * that a hook has set are kept. Returns 0 or a negative errno value. */
MK_API int mk_request_add_context(struct mk_request *request);

/** The virtual host that serves the request; NULL if the request failed before a virtual host was chosen. */
MK_API const struct mk_vhost *mk_request_vhost(const struct mk_request *request);
/**
 * Returns a name that identifies the virtual host, for state that virtual hosts must not share: its first
 * ServerName, with its ports if another [HOST] has the same name. If the requested host matches only a
 * pattern such as `*.example.org`, the name starts with that host in lower case and a space. The name is
 * stable across reloads, and on other machines with the same configuration. Absent if out of memory.
 */
MK_API mk_str mk_request_vhost_name(struct mk_request *request);
/** Sets the name of the virtual host as reported by a server in front of this one. The name is copied.
 * Returns 0 or -ENOMEM. */
MK_API int mk_request_set_vhost_name(struct mk_request *request, mk_str name);
/** The pattern of the matched route, as written in [ROUTES]; absent if no route was matched. */
MK_API mk_str mk_request_route(const struct mk_request *request);
struct mk_handler;
/** The handler of the matched route; NULL if no route was matched. */
MK_API const struct mk_handler *mk_request_handler(const struct mk_request *request);
/** The worker that serves the request. */
MK_API struct mk_worker *mk_request_worker(const struct mk_request *request);
/** The time at which the request was received, in seconds since the Unix epoch. */
MK_API int64_t mk_request_time(const struct mk_request *request);

/**
 * Rewrites the request to another path; only from on_request or a handler. `target` is a path with an
 * optional '?' and query, as a client would write it. Return MK_REWRITTEN afterwards. The remaining hooks
 * with a priority below MK_PRIORITY_NORMAL first check the old path; then the server resets the response and
 * calls all hooks again for the new path. After 10 rewrites the client receives a 500. Returns 0; -EINVAL if
 * the target is invalid; or -ENOMEM.
 *
 * A rewrite by a handler also turns the request into a GET (HEAD stays HEAD) without a body, and resets
 * mk_request_data() to NULL. mk_request_method_text() and mk_request_target() always return what the client
 * sent.
 *
 *     if (mk_request_rewrite(request, MK_STR("/index.html")))
 *         return MK_ERROR;
 *     return MK_REWRITTEN;
 */
MK_API int mk_request_rewrite(struct mk_request *request, mk_str target);

/**
 * Opens a path below the document root (or a user's folder), following links as configured. Returns a
 * descriptor for reading, which the caller closes, or a negative errno value. `path` has the form of
 * mk_request_path() (-EINVAL otherwise, for example with `..`) and may refer to a folder. May block on disk
 * I/O.
 */
MK_API int mk_request_open(const struct mk_request *request, mk_str path) MK_API_MUST_USE;
/** The type of a file. */
enum mk_file_kind { MK_FILE_REGULAR, MK_FILE_FOLDER, MK_FILE_OTHER };
/**
 * Returns the type of the file at a path below the document root (or a user's folder, or an Alias), following
 * links as configured: an enum mk_file_kind, or a negative errno value as from mk_request_open() (-ENOTDIR
 * for a file whose path ends with a slash). *id identifies the file, with its size and modification time;
 * `id` may be NULL.
 *
 * The result comes from the cache of open files without a system call, and is valid for `OpenFileCacheTTL`.
 * Files that are not cached are opened. Missing files are not cached.
 *
 *     struct mk_file_id id;
 *     if (mk_request_stat(request, mk_request_path(request), &id) == MK_FILE_REGULAR && id.size < 1000)
 */
MK_API int mk_request_stat(const struct mk_request *request, mk_str path,
                           struct mk_file_id *id) MK_API_MUST_USE;
/**
 * Finds the script in the request path: the shortest leading part that is a regular file below the document
 * root, as found by mk_request_stat(), and that ends with `extension` unless that is empty. *info receives
 * the rest of the path. A path that leads through any other file matches no script, so no other file is ever
 * executed. A hidden file is not a script unless hidden files are served. Returns 0, or the status for the
 * response: 404 if there is no script; 403 if the script is a hidden file or may not be opened; 500 or 503
 * for other errors. On an error, *name is the path that was looked up, or absent if no leading part ends with
 * `extension`.
 *
 *     mk_str script, info;
 *     unsigned status = mk_request_find_script(request, MK_STR(".lua"), &script, &info);
 */
MK_API unsigned mk_request_find_script(const struct mk_request *request, mk_str extension, mk_str *name,
                                       mk_str *info);
/** The absolute file name for a path, whether or not the file exists; NUL-terminated. Absent if out of
 * memory, if the virtual host has no document root, or if the path is invalid. */
MK_API mk_str mk_request_translate_path(const struct mk_request *request, mk_str path);
/** May files whose names start with a dot be served for this request? */
MK_API bool mk_request_shows_dot_files(const struct mk_request *request);
/**
 * The media type for a file name on this virtual host.
 *
 *     int e = mk_response_set_header(response, MK_STR("Content-Type"), mk_request_media_type(request, MK_STR("a.png")));
 */
MK_API mk_str mk_request_media_type(const struct mk_request *request, mk_str file_name);

/** Evaluates the preconditions of the request (RFC 9110, section 13.2.2) against the current representation.
 * `etag` includes its quotes (absent: none); `modified` is in seconds since 1970 (0: unknown). Returns 0:
 * continue; 304: the client has this representation; 412: a precondition failed. Call this function before
 * the handler changes anything. For a complete response, see mk_response_make_conditional(). */
MK_API unsigned mk_request_check_preconditions(const struct mk_request *request, mk_str etag,
                                               int64_t modified) MK_API_MUST_USE;
/** The client's preference for a content coding ("gzip") or a media type ("text/html"), as a quality in
 * thousandths; 0 means not acceptable (RFC 9110, sections 12.5.1 and 12.5.3). */
MK_API unsigned mk_request_accepts_coding(const struct mk_request *request, mk_str coding);
MK_API unsigned mk_request_accepts_type(const struct mk_request *request, mk_str type);

/** Sets the reason that access logs give for the end of the request: one static word, such as
 * "upstream_timeout". */
MK_API void mk_request_set_reason(struct mk_request *request, const char *reason);

/**
 * Writes a message to the error log of the virtual host, with the details of the request.
 *
 *     mk_request_log(request, MK_LOG_WARN, "no such item: %s", "tea");
 */
MK_API void mk_request_log(struct mk_request *request, enum mk_log_level level, const char *fmt, ...)
    MK_API_PRINTF(3, 4);
/** Writes a message with fields to the error log of the virtual host. */
MK_API void mk_request_log_fields(struct mk_request *request, enum mk_log_level level, mk_str message,
                                  const struct mk_log_fields *fields);
/** For on_log() of a plugin: writes the message to a log opened with mk_config_log(), in the format of the
 * server's error log (`ErrorLogFormat`) and with the details of the request. For syslog and the journal,
 * the level becomes the priority. Lines are buffered, and written in blocks within a second. */
MK_API void mk_request_log_to(struct mk_request *request, struct mk_logfile *log, enum mk_log_level level,
                              mk_str message);
/**
 * Copies the parts of a request that appear in log lines (host, method, target, address), so that
 * mk_request_log() can still be called after the request has ended: late output then goes to the log of the
 * same virtual host. Do not pass the copy to any other function. Returns NULL if out of memory. Free it with
 * mk_request_log_copy_free() (NULL is allowed), in worker_stop at the latest.
 */
MK_API struct mk_request *mk_request_log_copy(const struct mk_request *request) MK_API_MUST_USE;
MK_API void mk_request_log_copy_free(struct mk_request *copy);
/** For `monkey explain`: describes a step that affected the response. Has no effect on a request from a
 * client. */
MK_API void mk_request_explain(struct mk_request *request, const char *what, const char *fmt, ...)
    MK_API_PRINTF(3, 4);

/** The length of the request body: 0 if there is none, -1 if it is unknown until the end. */
MK_API int64_t mk_request_length(const struct mk_request *request);

/**
 * Reads the next bytes of the request body, with its transfer coding removed.
 *
 * Returns the number of bytes written to `buf` (`cap` is at least 1), or 0 at the end of the body. Returns
 * -EAGAIN if no data has arrived yet: return MK_WAIT from the handler, or -EAGAIN from the body source, which
 * is then called again when more data arrives. Errors are -EMSGSIZE if the body exceeds the limit (respond
 * with 413), -EBADMSG if it is malformed (400), and -ECONNRESET if the client disconnected.
 *
 * The server reads from the client only what you request here. The first call sends the `100 Continue` that a
 * client with `Expect: 100-continue` waits for (RFC 9110, section 10.1.1).
 *
 *     char buf[4096];
 *     ssize_t n;
 *     while ((n = mk_request_read(request, buf, sizeof buf)) > 0)
 *         consume(buf, (size_t)n);
 *     if (n == -EAGAIN)
 *         return MK_WAIT;
 */
MK_API ssize_t mk_request_read(struct mk_request *request, char *buf, size_t cap) MK_API_MUST_USE;

/**
 * The trailers of the request (RFC 9110, section 6.5), available once mk_request_read() has returned 0.
 * mk_request_trailer() returns the value of the first trailer with that name (case-insensitive); absent if
 * there is none. mk_request_trailer_at() returns false if `i` is out of range. Fields that would change the
 * meaning of the request (Content-Length, Authorization, ...) are dropped.
 */
MK_API mk_str mk_request_trailer(const struct mk_request *request, mk_str name);
MK_API bool mk_request_trailer_at(const struct mk_request *request, size_t i, mk_str *name,
                                  mk_str *value) MK_API_MUST_USE;

/** Does the client accept trailers (`TE: trailers`, RFC 9110, section 10.1.4)? */
MK_API bool mk_request_accepts_trailers(const struct mk_request *request);

/**
 * Resumes a request whose handler returned MK_WAIT, or whose body source returned -EAGAIN: the server calls
 * the handler or source again at the end of the current loop iteration. Has no effect on a request that is
 * not waiting.
 */
MK_API void mk_request_resume(struct mk_request *request);

/**
 * Cancels the request as soon as the client closes its side of the connection while the handler waits for
 * something other than input. Without this call, the server treats such a client as still listening (a
 * half-closed connection, RFC 9112, section 9.6), and detects a vanished client only when sending data. No
 * effect in a tunnel: use mk_request_read() there.
 */
MK_API void mk_request_cancel_on_disconnect(struct mk_request *request);

/**
 * Sets timeouts for this request, in place of `HandlerTimeout` (how long a handler or body source may wait
 * for anything but the client) and `TunnelTimeout`. The maximum is one day; MK_FOREVER: no timeout. They
 * apply to waits that start after the call. Returns 0, -EINVAL (0 milliseconds) or -ENOMEM.
 *
 * An event stream that may be silent for a long time needs MK_FOREVER. A wait without a timeout ends when the
 * client closes its side, as with mk_request_cancel_on_disconnect().
 */
MK_API int mk_request_set_handler_timeout(struct mk_request *request, uint32_t timeout_ms);
MK_API int mk_request_set_tunnel_timeout(struct mk_request *request, uint32_t timeout_ms);
/** Sets how long the client may be silent while the server waits for its request body, or for space to send
 * the response, in place of `MinRate`: for clients that send messages at irregular intervals. The maximum is
 * one day; MK_FOREVER: no timeout. Returns 0, -EINVAL (0 milliseconds) or -ENOMEM. */
MK_API int mk_request_set_body_timeout(struct mk_request *request, uint32_t timeout_ms);
/**
 * Sets the body limit in place of `MaxBodySize`, from on_request. You can only lower the limit, because the
 * server rejects longer bodies before any hook runs. The limit of a handler (mk_handler.body_max) overrides
 * both. UINT64_MAX: no limit. Returns 0; -EMSGSIZE if the body is longer: respond with 413; or -ENOMEM.
 *
 *     int e = mk_request_set_body_max(request, 64 << 10); // enough for a form without files
 *     if (e) {
 *         mk_response_set_status(response, e == -EMSGSIZE ? 413 : 500);
 *         return MK_ERROR;
 *     }
 */
MK_API int mk_request_set_body_max(struct mk_request *request, uint64_t bytes);
/** The effective limit of the request body; UINT64_MAX: no limit. */
MK_API uint64_t mk_request_body_max(struct mk_request *request);

/**
 * Allocates `size` bytes that live as long as the request, aligned for any type. Returns NULL if out
 * of memory.
 *
 *     struct person *person = mk_request_alloc(request, sizeof *person); // freed with the request
 *     if (!person)
 *         return MK_ERROR;
 */
MK_API void *mk_request_alloc(struct mk_request *request, size_t size);

/**
 * Calls fn(data) when the request ends, whatever the outcome. Returns 0, or -ENOMEM: fn is then never
 * called.
 *
 *     struct person *person = mk_mem_zalloc(1, sizeof *person);
 *     if (!person || mk_request_add_cleanup(request, mk_mem_free, person)) {
 *         mk_mem_free(person);
 *         return MK_ERROR;
 *     }
 */
MK_API int mk_request_add_cleanup(struct mk_request *request, void (*fn)(void *data),
                                  void *data) MK_API_MUST_USE;

/**
 * Attaches data to the request under `key`, an address that belongs to the caller, usually its
 * mk_plugin. When the request ends, `free` (may be NULL) receives the data, even if other data was
 * attached later. Returns 0, or -ENOMEM: `free` was then called immediately.
 *
 *     static const char key; // its address is the key
 *     int e = mk_request_attach(request, &key, person, mk_mem_free);
 *     ...
 *     struct person *found = mk_request_attached(request, &key);
 */
MK_API int mk_request_attach(struct mk_request *request, const void *key, void *data,
                             void (*free)(void *data)) MK_API_MUST_USE;
/** Returns the attached data; NULL if there is none. */
MK_API void *mk_request_attached(const struct mk_request *request, const void *key);

/** One pointer for the handler that owns the request; initially NULL. */
MK_API void mk_request_set_data(struct mk_request *request, void *data);
MK_API void *mk_request_data(const struct mk_request *request);

#ifdef __cplusplus
}
#endif

#endif
