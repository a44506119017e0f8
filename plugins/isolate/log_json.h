/* SPDX-License-Identifier: Apache-2.0 */
/* JSON lines in the output of a group: from its server, or from a service that imitates the server. */
#ifndef ISOLATE_LOG_JSON_H
#define ISOLATE_LOG_JSON_H

#include <monkey/buf.h>

struct isolate_log_json {
    mk_str level, pid, message; /* absent if the line has none; `message` keeps its quotes and escapes */
};

/* Parses an object whose members are strings, numbers, `true`, `false` or `null`. Appends a comma and the
 * text of each member to `members`, except those of the struct, and `time` and `isolate`. Returns false if
 * the line is not such an object. */
bool isolate_log_json_parse(mk_str line, struct isolate_log_json *out, struct mk_buf *members);

#endif
