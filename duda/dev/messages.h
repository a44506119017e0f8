/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the server and the linker, as a developer reads them: with places in the source, without those
 * of files that `monkey run` writes. */
#ifndef DUDA_DEV_MESSAGES_H
#define DUDA_DEV_MESSAGES_H

#include <monkey/buf.h>
#include <stdbool.h>

/* Removes locations in files below `folder` from the messages of a server. A location that refers to a source
 * becomes a message of that source: "FILE:LINE: error: ...". */
void dev_messages_strip_internal_paths(struct mk_buf *text, const char *folder);
/* Processes linker warnings about undefined symbols. Symbols accepted by `is_known` are dropped; the others
 * become errors, and the result is false. */
bool dev_messages_check_undefined(struct mk_buf *said, bool (*is_known)(const char *symbol));

#endif
