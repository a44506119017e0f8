/* SPDX-License-Identifier: Apache-2.0 */
/* A build without libzstd. */
#include "coder.h"

const struct coder_ops compress_zstd = {.name = "zstd"};
