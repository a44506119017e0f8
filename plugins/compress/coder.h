/* SPDX-License-Identifier: Apache-2.0 */
/* Content coding interface. One file per library. */
#ifndef COMPRESS_CODER_H
#define COMPRESS_CODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum coding { CODING_ZSTD, CODING_BROTLI, CODING_GZIP, CODINGS };

enum coder_op {
    CODER_RUN,   /* consume input, output what is ready */
    CODER_FLUSH, /* output everything that results from the consumed input */
    CODER_END,
};

struct coder_io {
    const char *in;
    size_t in_len; /* not consumed yet */
    char *out;
    size_t out_len, out_cap;
};

struct coder_ops {
    const char *name; /* as in Content-Encoding */
    /* NULL: not available in this build. Returns a new coder; NULL: out of memory. */
    void *(*open)(unsigned level);
    /* Prepares for new content of `length` bytes, or -1. False: the coder cannot be used. */
    bool (*begin)(void *coder, int64_t length);
    /* Compresses as much input as possible. *done: all input was consumed and `op` is finished; otherwise
     * call again with more space and the same `op`. False: failed. */
    bool (*run)(void *coder, struct coder_io *io, enum coder_op op, bool *done);
    void (*close)(void *coder);
    bool is_reusable; /* begin() may be called again after the end */
};

extern const struct coder_ops compress_gzip, compress_brotli, compress_zstd;

/* All coders. */
extern const struct coder_ops *const compress_coders[CODINGS];

#endif
