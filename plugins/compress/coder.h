/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of content codings. Each library has its own file. */
#ifndef COMPRESS_CODER_H
#define COMPRESS_CODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum coding { CODING_ZSTD, CODING_BROTLI, CODING_GZIP, CODINGS };

enum coder_op {
    CODER_RUN,   /* consume input, and write the output that is ready */
    CODER_FLUSH, /* write all output that results from the consumed input */
    CODER_END,
};

struct coder_io {
    const char *in;
    size_t in_len; /* input not yet consumed */
    char *out;
    size_t out_len, out_cap;
};

struct coder_ops {
    const char *name; /* as in Content-Encoding */
    /* Returns a new coder, or NULL if out of memory. `open` itself is NULL if this build lacks the coding. */
    void *(*open)(unsigned level);
    /* Prepares for new content of `length` bytes; -1: unknown. Returns false if the coder cannot be used. */
    bool (*begin)(void *coder, int64_t length);
    /* Compresses as much input as possible. *done is true if all input was consumed and `op` is finished;
     * otherwise call it again with more space and the same `op`. Returns false on failure. */
    bool (*run)(void *coder, struct coder_io *io, enum coder_op op, bool *done);
    void (*close)(void *coder);
    bool is_reusable; /* begin() may be called again after CODER_END */
};

extern const struct coder_ops compress_gzip, compress_brotli, compress_zstd;

/* The coders of all codings. */
extern const struct coder_ops *const compress_coders[CODINGS];

#endif
