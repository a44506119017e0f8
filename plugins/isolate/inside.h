/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside of a group: what the server in front knows of a request, and what it should know of us.
 */
#ifndef ISOLATE_INSIDE_H
#define ISOLATE_INSIDE_H

#include <monkey/plugin.h>

/* In the environment of a group: the descriptor of its board. */
#define ISOLATE_VARIABLE "MONKEY_ISOLATE"

struct isolate_inside;

/* 0 and *out = NULL: this server is not the inside of a group. Else 0, or a negated errno value. */
int isolate_inside_load(struct mk_config *config, struct isolate_inside **out);
/* Behind all other routes: what no handler has answered is for the server in front. */
void isolate_inside_host(struct mk_config *config, struct isolate_inside *inside);
int isolate_inside_start(struct mk_worker *worker, struct isolate_inside *inside,
                         const struct mk_plugin *plugin);
void isolate_inside_drain(struct mk_worker *worker, const struct mk_plugin *plugin);
void isolate_inside_stop(struct mk_worker *worker, const struct mk_plugin *plugin);
/* The first hook of each request: refuses those that no public worker has sent. */
enum mk_verdict isolate_inside_ask(struct mk_request *request, struct mk_response *response,
                                   struct isolate_inside *inside);

#endif
