/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside a group: client information from the front server, and status reports to it. */
#ifndef ISOLATE_INNER_SERVER_H
#define ISOLATE_INNER_SERVER_H

#include <monkey/plugin.h>

/* The environment variable with the descriptor of the group's scoreboard. */
#define ISOLATE_VARIABLE "MONKEY_ISOLATE"

struct isolate_inner_server;

/* Returns 0 or a negated errno value. *out is NULL if this server is not inside a group. */
int isolate_inner_server_load(struct mk_config *config, struct isolate_inner_server **out);
/* Adds a route after all others: the front server handles requests that no handler of the group has
 * handled. */
void isolate_inner_server_add_fallback(struct mk_config *config, struct isolate_inner_server *inner);
/* Called for each response of the group. */
void isolate_inner_server_finish_response(struct mk_response *response);
int isolate_inner_server_start(struct mk_worker *worker, struct isolate_inner_server *inner,
                               const struct mk_plugin *plugin);
void isolate_inner_server_drain(struct mk_worker *worker, const struct mk_plugin *plugin);
void isolate_inner_server_stop(struct mk_worker *worker, const struct mk_plugin *plugin);
/* The first hook of each request. Rejects requests that were not sent by a public worker. */
enum mk_verdict isolate_inner_server_check_sender(struct mk_request *request, struct mk_response *response,
                                                  struct isolate_inner_server *inner);

#endif
