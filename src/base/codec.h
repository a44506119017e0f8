/* SPDX-License-Identifier: Apache-2.0 */
/* Text written so that somebody else's syntax cannot be broken by it: HTML, URLs, JSON, logs, base64, hex. */
#ifndef MK_BASE_CODEC_H
#define MK_BASE_CODEC_H

#include <monkey/text.h>

#include "base/buf.h"

/* As mk_log_escape, and mk_json_string without its quotes, but cut before `out` would be longer than `end`.
 */
void mk_log_escape_to(struct mk_buf *out, mk_str s, size_t end);
void mk_json_escape_to(struct mk_buf *out, mk_str s, size_t end);

#endif
