/* SPDX-License-Identifier: Apache-2.0 */
/* A content coding. One file for each knows its library. */
#ifndef COMPRESS_CODER_H
#define COMPRESS_CODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum coding { CODING_ZSTD, CODING_BROTLI, CODING_GZIP, CODINGS };

enum coder_op {
    CODER_RUN,   /* consume input, output what is ready */
    CODER_FLUSH, /* output everything that the consumed input yields */
    CODER_END,
};

struct coder_io {
    const char *in;
    size_t in_len; /* still to be consumed */
    char *out;
    size_t out_len, out_cap;
};

struct coder_ops {
    const char *name; /* as in Content-Encoding */
    /* NULL: this build has no such coder. Returns a new coder; NULL when out of memory. */
    void *(*open)(unsigned level);
    /* Prepares for new content of `length` bytes, or -1. False: the coder cannot be used. */
    bool (*begin)(void *coder, int64_t length);
    /* Compresses as much input as possible. *done: it has consumed all input and finished `op`; otherwise
     * call it again with more room and the same `op`. False: the coder failed. */
    bool (*run)(void *coder, struct coder_io *io, enum coder_op op, bool *done);
    void (*close)(void *coder);
    bool is_reusable; /* begin() works again after the end */
};

extern const struct coder_ops compress_gzip, compress_brotli, compress_zstd;

/* All of them. */
extern const struct coder_ops *const compress_coders[CODINGS];

#endif
