/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites messages from the server and the linker for developers: keeps locations in the sources, and
 * removes locations in files that `monkey run` has generated. */
#ifndef DUDA_DEV_MESSAGES_H
#define DUDA_DEV_MESSAGES_H

#include <monkey/buf.h>
#include <stdbool.h>

/* Removes locations in files below `folder` from the messages of a server. A message about a source gets the
 * form "FILE:LINE: error: ...". */
void dev_messages_strip_internal_paths(struct mk_buf *text, const char *folder);
/* Processes linker warnings about undefined symbols. Drops those about symbols that is_known() accepts; turns
 * the others into errors and returns false. */
bool dev_messages_check_undefined(struct mk_buf *messages, bool (*is_known)(const char *symbol));

/* Adds a hint to errors about names that the C library also defines, usually a handler called `index`. */
void dev_messages_explain_conflicts(struct mk_buf *messages);

/* Rewrites the linker's messages about names that several objects define: "/a/b.c:5: error: ...". */
void dev_messages_explain_duplicates(struct mk_buf *messages);

#endif
