/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey explain METHOD URL`: processes one request without a socket, and explains each decision of the
 * server. */
#ifndef MK_SERVER_EXPLAIN_H
#define MK_SERVER_EXPLAIN_H

#include "setup/config_generation.h"

/* `url`: absolute ("http://example.org/a") or a path. -EINVAL: neither, or the method is not a token.
 * -ENOSYS: this build has no explain (MK_EXPLAIN). */
mk_err mk_explain(struct mk_config_generation *g, mk_str method, mk_str url, struct mk_buf *out) MK_MUST_USE;

#endif
