/* SPDX-License-Identifier: Apache-2.0 */
#include "coder.h"

const struct coder_ops *const compress_coders[CODINGS] = {
    [CODING_ZSTD] = &compress_zstd,
    [CODING_BROTLI] = &compress_brotli,
    [CODING_GZIP] = &compress_gzip,
};
