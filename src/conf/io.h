/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks through which the reader accesses files and the environment, and the limits of a
 * configuration. */
#ifndef MK_CONF_IO_H
#define MK_CONF_IO_H

#include "base/buf.h"
#include "base/err.h"

enum {
    MK_CONF_LINE_MAX = 65536,      /* bytes of a line without its end, and of an expanded value */
    MK_CONF_FILE_MAX = 16 << 20,   /* bytes of a file */
    MK_CONF_FILES_MAX = 16384,     /* files of one configuration */
    MK_CONF_TOTAL_MAX = 128 << 20, /* bytes of all its files */
    MK_CONF_DEPTH_MAX = 16         /* nested @INCLUDEs */
};

/* `glob` and `env` may be NULL: then no pattern matches and no variable is set. */
struct mk_conf_io {
    /* Appends the file to `out`. Returns 0 or a negative errno value. If `out` has failed, the error is
     * -EFBIG, or -ENOMEM if `out` has not reached its limit. */
    mk_err (*read)(void *ctx, mk_str path, struct mk_buf *out);
    /* Calls found() for every path that matches, in any order, until it returns false. Returns 0 (even if
     * nothing matches) or a negative errno value. The pattern is as in glob(3); the path is valid during the
     * call only. */
    mk_err (*glob)(void *ctx, mk_str pattern, bool (*found)(void *data, mk_str path), void *data);
    /* The value of an environment variable, absent if unset; must live until reading ends. */
    mk_str (*env)(void *ctx, mk_str name);
    void *ctx;
};

#endif
