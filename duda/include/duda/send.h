/* SPDX-License-Identifier: Apache-2.0 */
/* Answers with a form of their own: redirects, conditions, files, events, hints. */
#ifndef DUDA_SEND_H
#define DUDA_SEND_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Sends the client elsewhere: 303 after a form, 302, 307 or 308. What it answers is what the handler returns:
 * the status, or -EINVAL when that is none of a redirect. Blanks, control characters, letters beyond ASCII and what
 * else no URL may have become %XX. A URL that comes from the client sends clients anywhere: use
 * duda_redirect_local() for it.
 *
 *     return duda_redirect(d, 303, "/items");
 */
MK_API int duda_redirect(struct duda_ctx *d, unsigned status, const char *url) MK_API_MUST_USE;
/**
 * The same for a text that may come from the client: only to a path of this host. 400 for anything that a browser
 * could take for another host: a URL, a path that begins with `//` or a slash and a backslash, one with control
 * characters, or none.
 *
 *     return duda_redirect_local(d, 303, duda_query_or(d, "next", "/"));
 */
MK_API int duda_redirect_local(struct duda_ctx *d, unsigned status, const char *path) MK_API_MUST_USE;

/**
 * Says which version of the page this is, and asks whether the client has it already (RFC 9110, section 13).
 * `etag` is any text without `"` (NULL: none), `modified` seconds since 1970 (0: unknown). 0: go on;
 * otherwise what the handler returns: 304, 412 (the client wants to change another version), or an error.
 *
 *     int e = duda_check_preconditions(d, version, 0);
 *     if (e)
 *         return e;
 */
MK_API int duda_check_preconditions(struct duda_ctx *d, const char *etag, int64_t modified) MK_API_MUST_USE;

/** A file beneath the document root of the host, with its type and validators. What it answers is what the
 * handler returns: 0, 304, 404 if there is none, or an error. It may wait for a disk. */
MK_API int duda_send_file(struct duda_ctx *d, const char *path);
/** `length` bytes of an open file from `offset` on, which the kernel sends; instead of anything said. The
 * descriptor is not the caller's any more, whatever the result. */
MK_API int duda_send_fd(struct duda_ctx *d, int fd, uint64_t offset, uint64_t length);

/**
 * One server-sent event. The first one begins the response, as text/event-stream without deadline; each is
 * sent at once, and waits while the client has no room. `name` and `id` may be NULL; each line of the data
 * becomes one. -EINVAL: a line end in name or id. An empty event with the name NULL is a comment, which
 * keeps the connection alive.
 *
 *     while (!(e = duda_sse_send(d, "clock", now_text(d), NULL)) && !(e = duda_sleep(d, 1000)))
 *         duda_arena_rewind(d, mark);
 *     return e;
 */
MK_API int duda_sse_send(struct duda_ctx *d, const char *name, mk_str data, const char *id);

/** Early hints (103) for a browser: `link` is "</style.css>; rel=preload; as=style". Clients that do not know
 * them get none. 0, -EINVAL, or -EALREADY. */
MK_API int duda_early_hints(struct duda_ctx *d, const char *link);

/** Says the text as a page of HTML. Escape what is not yours: duda_html_escape(). */
MK_API int duda_html(struct duda_ctx *d, mk_str page);
/** A copy with & < > " ' as references, followed by a NUL; absent when memory is out. */
MK_API mk_str duda_html_escape(struct duda_ctx *d, mk_str text) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
