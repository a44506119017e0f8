/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual hosts, for plugins. */
#ifndef MONKEY_HOST_H
#define MONKEY_HOST_H

#include <monkey/str.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_plugin;

/** A virtual host of the configuration. Results of these functions live as long as the configuration. */
struct mk_vhost;

/** The first ServerName as written: `*.example.org` and `~REGEX` are patterns. Empty if there is none. */
MK_API mk_str mk_vhost_name(const struct mk_vhost *vhost);
/** The i-th ServerName; absent if `i` is out of range. */
MK_API mk_str mk_vhost_name_at(const struct mk_vhost *vhost, size_t i);
/**
 * The absolute path of the DocumentRoot; empty if there is none.
 *
 *     mk_str root = mk_vhost_root(mk_request_vhost(request)); // DocumentRoot
 */
MK_API mk_str mk_vhost_root(const struct mk_vhost *vhost);
/** The i-th index file name. A request for a folder returns the first of these files that the folder
 * contains. Absent if `i` is out of range. */
MK_API mk_str mk_vhost_index_at(const struct mk_vhost *vhost, size_t i);
/** The i-th route as written: its pattern and handler. Returns false if `i` is out of range. */
MK_API bool mk_vhost_route_at(const struct mk_vhost *vhost, size_t i, mk_str *pattern, mk_str *handler);
/** The data that host() of the plugin set for this virtual host; NULL if the plugin does not apply to it. */
MK_API void *mk_vhost_data(const struct mk_vhost *vhost, const struct mk_plugin *plugin);

#ifdef __cplusplus
}
#endif

#endif
