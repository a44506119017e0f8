/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks through which the reader accesses files and the environment, and the limits of a
 * configuration. */
#ifndef MK_CONF_IO_H
#define MK_CONF_IO_H

#include "base/buf.h"
#include "base/err.h"

enum {
    MK_CONF_LINE_MAX = 65536,      /* bytes of a line without its line end, and of an expanded value */
    MK_CONF_FILE_MAX = 16 << 20,   /* bytes of a file */
    MK_CONF_FILES_MAX = 16384,     /* files of a configuration */
    MK_CONF_TOTAL_MAX = 128 << 20, /* bytes of all files of a configuration */
    MK_CONF_DEPTH_MAX = 16         /* nested @INCLUDEs */
};

/* `glob` and `env` may be NULL. Without `glob`, no pattern matches; without `env`, all variables are
 * unset. */
struct mk_conf_io {
    /* Appends the content of the file to `out`. Returns 0, -EFBIG if the content exceeds the limit of `out`,
     * -ENOMEM, or another negative errno value. */
    mk_err (*read)(void *ctx, mk_str path, struct mk_buf *out);
    /* Calls found() for every path that matches the pattern, in any order, until found() returns false.
     * Returns 0 (even if nothing matches) or a negative errno value. The pattern is as in glob(3). Each path
     * is valid only during its call of found(). */
    mk_err (*glob)(void *ctx, mk_str pattern, bool (*found)(void *data, mk_str path), void *data);
    /* Returns the value of an environment variable, absent if the variable is unset. The value must stay
     * valid until the configuration has been read. */
    mk_str (*env)(void *ctx, mk_str name);
    /* May the file be read? Only the reader of the default layout calls this function. */
    bool (*exists)(void *ctx, mk_str path);
    void *ctx;
};

#endif
