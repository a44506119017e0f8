/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual hosts as plugins see them. */
#ifndef MONKEY_HOST_H
#define MONKEY_HOST_H

#include <monkey/str.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_plugin;

/** A virtual host of the configuration. What these answer lives as long as the configuration. */
struct mk_vhost;

/** Its first ServerName, as written: `*.example.org` and `~REGEX` are patterns. Empty when it has none. */
MK_API mk_str mk_vhost_name(const struct mk_vhost *h);
/** The i-th ServerName; absent when there are no more. */
MK_API mk_str mk_vhost_name_at(const struct mk_vhost *h, size_t i);
/** The DocumentRoot, absolute; empty when there is none. */
MK_API mk_str mk_vhost_root(const struct mk_vhost *h);
/** The i-th route as written, pattern and handler; false when there are no more. */
MK_API bool mk_vhost_route_at(const struct mk_vhost *h, size_t i, mk_str *pattern, mk_str *handler);
/** What the plugin's host() made for it; NULL if it has no business there. */
MK_API void *mk_vhost_data(const struct mk_vhost *h, const struct mk_plugin *plugin);

#ifdef __cplusplus
}
#endif

#endif
