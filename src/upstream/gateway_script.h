/* SPDX-License-Identifier: Apache-2.0 */
/* Which script a path leads to. */
#ifndef MK_UPSTREAM_GATEWAY_SCRIPT_H
#define MK_UPSTREAM_GATEWAY_SCRIPT_H

#include <monkey/request.h>

/*
 * The script is the first part of the request's path, from the left, that ends with `split` and is a regular
 * file beneath the document root; the rest is its path info. A path that goes through another file leads to
 * no script, so nothing else is ever run. 0, or the status that the request deserves: 404 if there is none;
 * then *name is what was looked for, or absent if no part ends with `split`.
 */
unsigned mk_gateway_script_find(const struct mk_request *request, mk_str split, mk_str *name, mk_str *info);

#endif
