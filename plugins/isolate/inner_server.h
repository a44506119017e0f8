/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside a group: client information from the front server, and status reports to it. */
#ifndef ISOLATE_INNER_SERVER_H
#define ISOLATE_INNER_SERVER_H

#include <monkey/plugin.h>

/* Environment variable of a group: descriptor of its scoreboard. */
#define ISOLATE_VARIABLE "MONKEY_ISOLATE"

struct isolate_inner_server;

/* 0 and *out = NULL: this server is not inside a group. Otherwise 0, or a negated errno value. */
int isolate_inner_server_load(struct mk_config *config, struct isolate_inner_server **out);
/* After all other routes: the front server handles what no handler has. */
void isolate_inner_server_add_fallback(struct mk_config *config, struct isolate_inner_server *inside);
int isolate_inner_server_start(struct mk_worker *worker, struct isolate_inner_server *inside,
                               const struct mk_plugin *plugin);
void isolate_inner_server_drain(struct mk_worker *worker, const struct mk_plugin *plugin);
void isolate_inner_server_stop(struct mk_worker *worker, const struct mk_plugin *plugin);
/* First hook of each request: rejects requests not sent by a public worker. */
enum mk_verdict isolate_inner_server_check_sender(struct mk_request *request, struct mk_response *response,
                                                  struct isolate_inner_server *inside);

#endif
