/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey explain METHOD URL`: walks one request through a configuration without any socket, and says at each
 * step what decided. */
#ifndef MK_SERVER_EXPLAIN_H
#define MK_SERVER_EXPLAIN_H

#include "server/generation.h"

/* `url` is absolute ("http://example.org/a") or a path. -EINVAL: it is neither, or the method is no token. */
mk_err mk_explain(struct mk_generation *g, mk_str method, mk_str url, struct mk_buf *out) MK_MUST_USE;

#endif
