/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey explain METHOD URL`: processes one request without a socket, and explains each decision of the
 * server. */
#ifndef MK_SERVER_EXPLAIN_H
#define MK_SERVER_EXPLAIN_H

#include "server/command_line.h"
#include "setup/config_generation.h"

/* The options of `explain`. */
const struct mk_option *mk_explain_options(size_t *n);
/* Takes the options of `explain` out of the arguments of the program: -X, -H and --from. With -X, inserts the method as the
 * first word after `explain`. False: an option is invalid, and the reason was printed. */
bool mk_explain_take_options(int *argc, char **argv, struct mk_explain_request *out) MK_MUST_USE;
/* -EINVAL: the method, the URL, a header or the address is invalid. */
mk_err mk_explain(struct mk_config_generation *g, const struct mk_explain_request *request,
                  struct mk_buf *out) MK_MUST_USE;
/* `-T`: prints the effective configuration, with references in place of values of the environment. */
void mk_explain_config(const struct mk_config_generation *g, struct mk_buf *out);

#endif
