/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and rewrites the target of a request: each rewrite creates a new struct mk_request_target. */
#ifndef MK_WEB_REQUEST_TARGET_H
#define MK_WEB_REQUEST_TARGET_H

#include "base/compiler.h"
#include "web/request_type.h"

/* Parses the client's target and Host. Returns 0, 400, or 503 if out of memory. `host` is the name in the
 * Host header. */
int mk_request_target_init(struct mk_request *r, mk_str target_text, mk_str host) MK_MUST_USE;
/* Like mk_request_target_init(), but for a new request whose target is a path that satisfies
 * mk_path_is_plain(), optionally followed by '?' and a query. Returns 0 or 503. */
int mk_request_target_init_plain(struct mk_request *r, mk_str target_text, size_t path_len) MK_MUST_USE;
/* Like mk_request_target_init(), but for a target that satisfies mk_target_is_visible(). */
int mk_request_target_init_checked(struct mk_request *r, mk_str target_text, mk_str host) MK_MUST_USE;

/* Rewrites the path, keeping body and query; the handler must then return MK_REWRITTEN. `path` must live as
 * long as the request. False: out of memory. */
bool mk_request_target_set_path(struct mk_request *r, mk_str path) MK_MUST_USE;

/* Returns the path and query of any target of the request, like mk_request_raw_target(). Absent: out of
 * memory. */
mk_str mk_request_target_uri(const struct mk_request *r, const struct mk_request_target *a);

#endif
