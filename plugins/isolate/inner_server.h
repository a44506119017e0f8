/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside of a group: what the server in front knows of a request, and what it should know of us.
 */
#ifndef ISOLATE_INNER_SERVER_H
#define ISOLATE_INNER_SERVER_H

#include <monkey/plugin.h>

/* In the environment of a group: the descriptor of its board. */
#define ISOLATE_VARIABLE "MONKEY_ISOLATE"

struct isolate_inner_server;

/* 0 and *out = NULL: this server is not the inside of a group. Else 0, or a negated errno value. */
int isolate_inner_server_load(struct mk_config *config, struct isolate_inner_server **out);
/* Behind all other routes: what no handler has answered is for the server in front. */
void isolate_inner_server_add_fallback(struct mk_config *config, struct isolate_inner_server *inside);
int isolate_inner_server_start(struct mk_worker *worker, struct isolate_inner_server *inside,
                               const struct mk_plugin *plugin);
void isolate_inner_server_drain(struct mk_worker *worker, const struct mk_plugin *plugin);
void isolate_inner_server_stop(struct mk_worker *worker, const struct mk_plugin *plugin);
/* The first hook of each request: refuses those that no public worker has sent. */
enum mk_verdict isolate_inner_server_check_sender(struct mk_request *request, struct mk_response *response,
                                                  struct isolate_inner_server *inside);

#endif
