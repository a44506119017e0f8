/* SPDX-License-Identifier: Apache-2.0 */
/* The service that state belongs to: for packages that keep something for services. */
#ifndef DUDA_SCOPE_H
#define DUDA_SCOPE_H

#include <duda/task.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * All state of a service is kept under a name, its scope: sessions, signed and sealed cookies, rooms, locks,
 * values and limits of stores, entries of [KV], jobs. The scope is the name of the service, so two services of
 * one server share nothing. `Share shop storefront checkout` in [DUDA] gives the
 * services `storefront` and `checkout` one scope, `shop`.
 *
 * Sessions, signed and sealed cookies also belong to the virtual host (mk_request_vhost_name()); `Share` names
 * the hosts that are to be one.
 */

/** The longest scope: letters, digits, `-` and `_`. */
enum { DUDA_SCOPE_MAX = 48 };

/** The scope of the service whose handler this is. Empty in a handler of a package, which belongs to no service. */
MK_API mk_str duda_scope(const struct duda_ctx *d);
/** The same of an owner; NULL: empty. */
MK_API mk_str duda_scope_of(const struct duda_service_ref *owner);
/** Adds "SCOPE:NAME": no two services have the same, because a scope has no colon. */
MK_API void duda_scope_add(struct mk_buf *out, mk_str scope, mk_str name);

#ifdef __cplusplus
}
#endif

#endif
