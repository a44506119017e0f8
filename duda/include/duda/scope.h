/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes: the namespaces that separate the state of services. For packages that store state for services. */
#ifndef DUDA_SCOPE_H
#define DUDA_SCOPE_H

#include <duda/task.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A service stores all state under a name, its scope: sessions, signed and encrypted cookies, topics, locks,
 * values and rate limits of stores, entries of [KV], and jobs. The scope is the name of the service, so by
 * default the services of a server share nothing. `Share shop storefront checkout` in [DUDA] gives the
 * services `storefront` and `checkout` a common scope, `shop`.
 *
 * Sessions and signed and encrypted cookies also belong to the virtual host (mk_request_vhost_name()); the
 * virtual hosts after `on` in a `Share` count as one.
 */

/** Maximum length of a scope. It consists of letters, digits, `-` and `_`. */
enum { DUDA_SCOPE_MAX = 48 };

/** The scope of the handler's service. Empty in a handler of a package, because it belongs to no service. */
MK_API mk_str duda_scope(struct duda_ctx *d);
/** The scope of a service; empty for NULL. */
MK_API mk_str duda_scope_of(const struct duda_service_ref *owner);
/** Appends "SCOPE:NAME". The result is unique to the scope, because a scope contains no colon. */
MK_API void duda_scope_add(struct mk_buf *out, mk_str scope, mk_str name);

#ifdef __cplusplus
}
#endif

#endif
