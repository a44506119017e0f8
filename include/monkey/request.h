/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MONKEY_REQUEST_H
#define MONKEY_REQUEST_H

#include <monkey/http.h>
#include <monkey/str.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A request: frozen once a handler sees it, the same over every version of HTTP.
 *
 * Every text that these functions answer lives as long as the request. All of them may be called only in the
 * worker that serves the request, from a hook, a handler or a source, unless they say otherwise.
 */
struct mk_request;

/** The method; MK_METHOD_UNKNOWN for one that is not in the enum (see mk_request_method_text()). */
enum mk_method mk_request_method(const struct mk_request *r);
mk_str mk_request_method_text(const struct mk_request *r);

/** The version as major * 10 + minor: 10, 11, 20. */
unsigned mk_request_version(const struct mk_request *r);

/** The request target as it came (RFC 9112, section 3.2). */
mk_str mk_request_target(const struct mk_request *r);

/** The path, decoded once, without dot segments and doubled slashes; begins with '/', holds no NUL. "*" for
 * OPTIONS *. */
mk_str mk_request_path(const struct mk_request *r);

/** What follows the '?', undecoded; absent (p == NULL) when there is no '?'. */
mk_str mk_request_query(const struct mk_request *r);

/** The host that the client asked for, without port; absent in HTTP/1.0 without Host. */
mk_str mk_request_host(const struct mk_request *r);

/** The value of the first field line of that name, in any case of letters; absent if there is none. */
mk_str mk_request_field(const struct mk_request *r, mk_str name);

/** The i-th field line, in the order they came; 0 when there are no more. */
int mk_request_field_at(const struct mk_request *r, size_t i, mk_str *name, mk_str *value);

/** The client's address as text, without port. */
mk_str mk_request_peer(struct mk_request *r);

/** Length of the content: 0 when there is none, -1 when only its end will tell. */
int64_t mk_request_length(const struct mk_request *r);

/**
 * Reads the next bytes of the content (its transfer coding removed).
 *
 * Answers how many bytes it wrote to `room` (`cap` is at least 1); 0 at the end of the content; -EAGAIN when
 * nothing has arrived yet: return MK_WAIT from the handler or -EAGAIN from the source, and it is called again
 * when there is more. -EMSGSIZE: larger than the limit (the answer should be 413); -EBADMSG: malformed (400);
 * -ECONNRESET: the client went away.
 *
 * Nothing is read from the client that was not asked for here. The first call sends the `100 Continue` that a
 * client with `Expect: 100-continue` waits for (RFC 9110, section 10.1.1).
 *
 *     char room[4096];
 *     ssize_t n;
 *     while ((n = mk_request_read(request, room, sizeof room)) > 0)
 *         consume(room, (size_t)n);
 *     if (n == -EAGAIN)
 *         return MK_WAIT;
 */
ssize_t mk_request_read(struct mk_request *r, char *room, size_t cap);

/**
 * Goes on with a request whose handler answered MK_WAIT, or whose source answered -EAGAIN: that handler or
 * source is called again, at the end of the current turn of the loop. Harmless when nobody waits.
 */
void mk_request_resume(struct mk_request *r);

/** `size` bytes that live as long as the request, aligned for any type; NULL when memory is out. */
void *mk_request_alloc(struct mk_request *r, size_t size);

/** Calls fn(data) when the request ends, however it ends. 0, or -ENOMEM: then it will not be called. */
int mk_request_on_end(struct mk_request *r, void (*fn)(void *data), void *data);

/** One pointer for the handler that owns the request; NULL at first. */
void mk_request_set_data(struct mk_request *r, void *data);
void *mk_request_data(const struct mk_request *r);

#ifdef __cplusplus
}
#endif

#endif
