/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out what a request asks for, and changes it: each step makes a new struct mk_request_target. */
#ifndef MK_WEB_REQUEST_TARGET_H
#define MK_WEB_REQUEST_TARGET_H

#include "base/compiler.h"
#include "web/request_type.h"

/* The client's target and Host in their parts. 0, 400, or 503 when memory is out. `host` is the one of the
 * Host field. */
int mk_request_target_init(struct mk_request *r, mk_str target_text, mk_str host) MK_MUST_USE;
/* The same for a target that begins with a mk_path_is_plain(), and goes on with '?' if it does. The request
 * is new. 0, or 503. */
int mk_request_target_init_plain(struct mk_request *r, mk_str target_text, size_t path_len) MK_MUST_USE;
/* The same for a target that mk_target_is_visible(). */
int mk_request_target_init_checked(struct mk_request *r, mk_str target_text, mk_str host) MK_MUST_USE;

/* Another path for the same content, with the same query; the handler answers MK_REWRITTEN. `path` lives as
 * long as the request. False when memory is out. */
bool mk_request_target_set_path(struct mk_request *r, mk_str path) MK_MUST_USE;

/* Path and query as mk_request_raw_target() writes them. Absent when memory is out. */
mk_str mk_request_target_uri(const struct mk_request *r, const struct mk_request_target *a);

#endif
