/* SPDX-License-Identifier: Apache-2.0 */
/* A content coding, made by somebody else's library: one file each knows it. */
#ifndef COMPRESS_CODER_H
#define COMPRESS_CODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum coding { CODING_ZSTD, CODING_BROTLI, CODING_GZIP, CODINGS };

enum coder_op {
    CODER_RUN,   /* take input, give output when there is some */
    CODER_FLUSH, /* give all that can be made of what was taken */
    CODER_END,
};

struct coder_io {
    const char *in;
    size_t in_len; /* what is left of it */
    char *out;
    size_t out_len, out_cap;
};

struct coder_ops {
    const char *name; /* as in Content-Encoding */
    /* NULL: this build has none. Else a coder of its own, or NULL. */
    void *(*open)(unsigned level);
    /* Makes it ready for new content, `length` bytes or -1. False: it cannot be used. */
    bool (*begin)(void *coder, int64_t length);
    /* Makes what it can of the input. True in *done: all of it was taken, and what `op` asks for is done;
     * else there must be more room, and the same is to be asked again. False: it is broken. */
    bool (*run)(void *coder, struct coder_io *io, enum coder_op op, bool *done);
    void (*close)(void *coder);
    bool is_reusable; /* begin() works again after the end */
};

extern const struct coder_ops compress_gzip, compress_brotli, compress_zstd;

/* All of them. */
extern const struct coder_ops *const compress_coders[CODINGS];

#endif
