/* SPDX-License-Identifier: Apache-2.0 */
/* The commands `top` and `requests` of the control socket: a worker reads the recording of its own server. */
#ifndef TOP_RECORDER_COMMAND_H
#define TOP_RECORDER_COMMAND_H

#include <monkey/plugin.h>

struct top_server;

/* Returns NULL if out of memory. */
struct top_server *top_server_new(struct mk_worker *worker);
/* No command may be running. NULL is allowed. */
void top_server_free(struct top_server *s);
/* Implements on_command of the plugin: `words` are a command and its options. */
int top_command_run(struct top_server *s, mk_str words, struct mk_buf *out, const struct mk_command_end *end);

#endif
