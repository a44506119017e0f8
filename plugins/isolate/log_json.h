/* SPDX-License-Identifier: Apache-2.0 */
/* JSON lines in the output of a group, which its server or, in imitation, a service has written. */
#ifndef ISOLATE_LOG_JSON_H
#define ISOLATE_LOG_JSON_H

#include <monkey/buf.h>

struct isolate_log_json {
    mk_str level, pid, message; /* of the line; the message is JSON, in quotes. Absent: not in the line */
};

/* Parses an object whose members are strings, numbers, `true`, `false` or `null`. Appends a comma and the text of
 * each member to `members`, except those of the struct, and `time` and `isolate`. Returns false if the line is
 * not such an object. */
bool isolate_log_json_parse(mk_str line, struct isolate_log_json *out, struct mk_buf *members);

#endif
