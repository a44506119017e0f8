/* SPDX-License-Identifier: Apache-2.0 */
/* The brotli coder of a build without libbrotlienc. */
#include "coder.h"

const struct coder_ops compress_brotli = {.name = "br"};
