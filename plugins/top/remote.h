/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a server for its recording over the control socket of the plugin cheetah. */
#ifndef TOP_RECORDER_REMOTE_H
#define TOP_RECORDER_REMOTE_H

#include <monkey/buf.h>

enum {
    TOP_REMOTE_TARGET_MAX = 1024,
    TOP_REMOTE_ERROR_MAX = 512,
    TOP_REMOTE_CONTENT_MAX = 8 << 20,
    TOP_REMOTE_TRIES = 20 /* while processes of the server are replaced */
};

/* Requests the target. Appends the content to `out`: lines of UTF-8, without other control characters. Returns false after
 * writing the reason to `error`, which has TOP_REMOTE_ERROR_MAX bytes. */
bool top_remote_get(const char *socket_path, const struct mk_buf *target, unsigned tries, struct mk_buf *out,
                    char *error);
/* Prints to standard output. Returns false after reporting a failure of `command`. */
bool top_remote_print(const char *command, mk_str text);

#endif
