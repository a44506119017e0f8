/* SPDX-License-Identifier: Apache-2.0 */
/* Special responses: redirects, conditional requests, files, server-sent events, early hints. */
#ifndef DUDA_SEND_H
#define DUDA_SEND_H

#include <duda/service.h>
#include <monkey/sse.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Redirects the client with 303 (after a form submission), 301, 302, 307 or 308. Return the result from the
 * handler: the status; -EINVAL if the status is not a redirect or the URL is absent; -ENOMEM; or -EALREADY if
 * the response has started. Spaces, control characters, non-ASCII letters and other characters that are
 * invalid in a URL are percent-encoded. A URL that comes from the client makes this an open redirect: use
 * duda_redirect_local() for such URLs.
 *
 *     return duda_redirect(d, 303, MK_STR("/items"));
 */
MK_API duda_verdict duda_redirect(struct duda_ctx *d, unsigned status, mk_str url) MK_API_MUST_USE;
/**
 * Redirects to a path on this host; the path may come from the client. Returns 400 for anything that a
 * browser could interpret as another host: a URL, a path that begins with `//` or with a slash and a
 * backslash, a path with control characters, or an empty or absent path.
 *
 *     return duda_redirect_local(d, 303, duda_query(d, "next"));
 */
MK_API duda_verdict duda_redirect_local(struct duda_ctx *d, unsigned status, mk_str path) MK_API_MUST_USE;

/**
 * Evaluates conditional requests (RFC 9110, section 13) against the current version of the page. `etag` is a
 * string without spaces and quotes (absent: none), and `modified` is in seconds since 1970 (0: unknown).
 * Returns 0 if the handler should continue. Return any other result from the handler: 304 (the client has
 * this version), 412 (the client's change is based on a different version), or an error.
 *
 *     int e = duda_check_preconditions(d, version, 0);
 *     if (e)
 *         return e;
 */
MK_API duda_verdict duda_check_preconditions(struct duda_ctx *d, mk_str etag,
                                             int64_t modified) MK_API_MUST_USE;

/**
 * Makes the response conditional: Duda calls mk_response_make_conditional() when the body is complete. Flags:
 * MK_CONDITIONAL_ETAG adds an ETag, a digest of the body. MK_CONDITIONAL_RANGES serves byte ranges of the
 * body; Duda then buffers up to 8 MB of the body instead of 64 KB. Longer bodies are streamed, without an
 * ETag or ranges. Returns 0, or -EALREADY if the response has started.
 *
 *     int e = duda_make_conditional(d, MK_CONDITIONAL_ETAG | MK_CONDITIONAL_RANGES);
 *     return e ? e : duda_write(d, report);
 */
MK_API int duda_make_conditional(struct duda_ctx *d, unsigned flags);
/**
 * Middleware that adds an ETag to the buffered responses of all later routes, as Express does. A client that
 * already has the same body gets 304 instead. The handler runs in any case; to avoid its work, use
 * duda_check_preconditions().
 *
 *     DUDA_ROUTES(pages, DUDA_BEFORE(duda_auto_etag), DUDA_GET("/", home, "Shows the home page."));
 */
MK_API duda_verdict duda_auto_etag(struct duda_ctx *d);

/** Serves a file, such as a static file or a download, with its media type and validators. The client may
 * request byte ranges, for example to resume a download. `path` begins with a slash and is relative to the
 * document root of the virtual host. Return the result from the handler: 0, 304 or 412; 404 if the file does
 * not exist or is not a regular file; or an error. Opening the file may block on disk I/O, unlike
 * duda_send_file_from(). */
MK_API duda_verdict duda_send_file(struct duda_ctx *d, mk_str path) MK_API_MUST_USE;
/**
 * Serves a file of a folder that the service has chosen, such as an upload, with its media type and
 * validators. The client may request byte ranges. `name` is a path relative to the folder, and may come from
 * the client: it cannot lead out of the folder. Symbolic links below the folder are not followed. A thread
 * opens the file while the handler waits. Call duda_content_type() first if the name has no extension, like
 * the names that duda_upload_save_unique() generates.
 *
 *     return duda_send_file_from(d, "/var/lib/photos", duda_param(d, "name"));
 *
 * Return the result from the handler: 0, 304, or 412; 404 if `name` is not the path of a file, or names a
 * hidden file; 500 if the folder or the file cannot be read; or an error of duda_offload(). The sandbox must
 * permit access to the folder: configure the folder with a key of the service's section that has the flag
 * MK_CONF_READS or MK_CONF_WRITES (see duda_settings()), or list it in `ReadablePaths` or `WritablePaths` of
 * [DUDA].
 */
MK_API duda_verdict duda_send_file_from(struct duda_ctx *d, const char *folder, mk_str name) MK_API_MUST_USE;
/**
 * Sends `length` bytes of an open file, starting at `offset`, as the response body. The kernel copies the
 * data. Takes ownership of the descriptor, even on failure. The client may request byte ranges of the body.
 * Clients can resume a download safely only if the response has a validator, which duda_check_preconditions()
 * sets. Returns 0; -EALREADY if the response has started; -EINVAL if the handler has already written a body,
 * or if the descriptor or the range is invalid; or -ENOMEM.
 *
 *     int fd = open("/srv/report.pdf", O_RDONLY | O_CLOEXEC);
 *     if (fd < 0)
 *         return 404;
 *     struct stat st;
 *     if (fstat(fd, &st)) {
 *         close(fd);
 *         return 500;
 *     }
 *     return duda_send_fd(d, fd, 0, (uint64_t)st.st_size);
 */
MK_API int duda_send_fd(struct duda_ctx *d, int fd, uint64_t offset, uint64_t length);

/**
 * Serves the assets of the service, such as style sheets, scripts and images: the files in the folder
 * `assets` next to the object file of the service or, if there is none, next to its source. The server reads
 * them into memory, up to 64 MB, when it loads the service. duda_asset_url() returns the URL of an asset,
 * which contains a fingerprint of its content: "/static/app.3f2a1c9b04.css". Browsers cache this URL for a
 * year. When the content changes, so does the URL. A URL without a fingerprint, or with an old one, returns
 * the current content, which browsers must revalidate.
 *
 *     DUDA_ROUTES(site, DUDA_ASSETS("/static"), DUDA_GET("/", home, "Shows the home page."));
 */
#define DUDA_ASSETS(prefix)                                                                                  \
    DUDA_GET(prefix "/"                                                                                      \
                    "*path",                                                                                 \
             duda_send_asset, "Serves the assets.", DUDA_HIDDEN)
/** The handler of DUDA_ASSETS(). */
MK_API duda_verdict duda_send_asset(struct duda_ctx *d);
/**
 * Returns the URL of an asset, such as "app.css" or "img/logo.png". Templates use `{{asset "app.css"}}`. If
 * there is no such asset, logs an error and returns an absent string. The URL is valid until the handler
 * returns.
 *
 *     return duda_printf(d, "<link rel=stylesheet href=\"%s\">\n", duda_asset_url(d, MK_STR("app.css")).p);
 */
MK_API mk_str duda_asset_url(struct duda_ctx *d, mk_str name) MK_API_MUST_USE;

/**
 * Makes the response a download: sets `Content-Disposition: attachment` with a file name (RFC 6266), which
 * may come from an untrusted source. The name is UTF-8, and is cut off after 255 bytes; old clients get an
 * ASCII form of it. Slashes, backslashes, control characters, invalid UTF-8 and characters that change the
 * text direction are replaced by `_`. If the name is absent or empty, the client chooses one. Returns 0,
 * -ENOMEM, or -EALREADY if the response has started.
 *
 *     int e = duda_attachment(d, MK_STR("Rechnung 2026 für Jürgen.pdf"));
 *     return e ? e : duda_send_file(d, MK_STR("/invoices/17.pdf"));
 */
MK_API int duda_attachment(struct duda_ctx *d, mk_str file_name);

/**
 * Sends one event of a server-sent event (SSE) stream. The first event starts the response, as
 * text/event-stream and without a deadline. Each event is sent at once; the function waits while the client
 * reads too slowly. Returns 0; -EINVAL if the name or the ID contains a line break; or an error as for
 * duda_write(). NULL, or an event with no members set, sends a comment.
 *
 * While the handler waits, Duda sends comments, so that the stream is never silent for longer than the
 * interval of `SSEKeepAlive` of [DUDA] or of duda_sse_set_keep_alive(). Proxies then keep the connection
 * open, and Duda notices that a client has vanished and cancels the handler. When the worker drains, the
 * stream ends at once: the waits of the handler return -ESHUTDOWN, and the client reconnects after a random
 * time of 0.5 to 3.5 seconds, unless the service has sent its own `retry_ms`. Do not call duda_write() in an
 * event stream.
 *
 *     struct mk_sse_event tick = {.name = MK_STR("clock"), .data = now_text(d)};
 *     while (!(e = duda_sse_send(d, &tick)) && !(e = duda_sleep(d, 1000))) {
 *         duda_arena_rewind(d, mark);
 *         tick.data = now_text(d);
 *     }
 *     return e;
 */
MK_API int duda_sse_send_sized(struct duda_ctx *d, const struct mk_sse_event *event, size_t event_size);
static inline int duda_sse_send(struct duda_ctx *d, const struct mk_sse_event *event)
{
    return duda_sse_send_sized(d, event, sizeof *event);
}

/**
 * Sets how long the event stream of this handler may be silent before Duda sends a keep-alive comment (a
 * heartbeat), in place of `SSEKeepAlive`. Call the function before or after the first event. 0 restores
 * `SSEKeepAlive`; MK_FOREVER disables the comments.
 *
 *     duda_sse_set_keep_alive(d, 5000); // a proxy closes connections that are silent for 10 s
 */
MK_API void duda_sse_set_keep_alive(struct duda_ctx *d, uint32_t interval_ms);

/**
 * The ID of the last event that a reconnecting client has received (Last-Event-ID): continue with the event
 * after it. Absent if the client connects for the first time. The client can send any ID, so validate it.
 *
 *     int64_t id = 0;
 *     if (duda_sse_last_id(d).p && !mk_num_parse_int(duda_sse_last_id(d), &id))
 *         return 400;
 *     return send_news_after(d, id);
 */
MK_API mk_str duda_sse_last_id(struct duda_ctx *d) MK_API_MUST_USE;

/**
 * Sends early hints (103) to a browser: `link` is "</style.css>; rel=preload; as=style". Clients that do not
 * support early hints get none. Returns 0, -EINVAL, or -EALREADY.
 *
 *     duda_early_hints(d, MK_STR("</style.css>; rel=preload; as=style")); // then the slow query
 */
MK_API int duda_early_hints(struct duda_ctx *d, mk_str link);

/** Appends HTML to the response body, like duda_write(), and sets the Content-Type to text/html unless the
 * handler has set one. Escape untrusted text with duda_html_escape(). */
MK_API int duda_html(struct duda_ctx *d, mk_str page);
/**
 * Escapes text for HTML, against XSS (cross-site scripting): returns a NUL-terminated copy with & < > " '
 * as character references; absent if out of memory.
 *
 *     mk_str name = duda_html_escape(d, duda_query(d, "name"));
 *     return duda_html(d, duda_sprintf(d, "<p>Hello %.*s", MK_STR_ARG(name)));
 */
MK_API mk_str duda_html_escape(struct duda_ctx *d, mk_str text) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
