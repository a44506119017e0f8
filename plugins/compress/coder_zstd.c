/* SPDX-License-Identifier: Apache-2.0 */
#include <zstd.h>

#include "coder.h"

/* A stream uses 1.3 MB at every level. Clients need not accept a window above 8 MB (RFC 9659). */
enum { WINDOW_LOG = 17, HASH_LOG = 16, CHAIN_LOG = 16 };

static bool set_zstd_parameter(ZSTD_CCtx *z, ZSTD_cParameter parameter, int value)
{
    return !ZSTD_isError(ZSTD_CCtx_setParameter(z, parameter, value));
}

static void *open_zstd(unsigned level)
{
    ZSTD_CCtx *z = ZSTD_createCCtx();
    if (z && set_zstd_parameter(z, ZSTD_c_compressionLevel, (int)level) &&
        set_zstd_parameter(z, ZSTD_c_windowLog, WINDOW_LOG) &&
        set_zstd_parameter(z, ZSTD_c_hashLog, HASH_LOG) && set_zstd_parameter(z, ZSTD_c_chainLog, CHAIN_LOG))
        return z;
    ZSTD_freeCCtx(z);
    return NULL;
}

static bool begin_zstd(void *coder, int64_t length)
{
    unsigned long long size = length < 0 ? ZSTD_CONTENTSIZE_UNKNOWN : (unsigned long long)length;
    return !ZSTD_isError(ZSTD_CCtx_reset(coder, ZSTD_reset_session_only)) &&
           !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(coder, size));
}

static bool run_zstd(void *coder, struct coder_io *io, enum coder_op op, bool *done)
{
    static const ZSTD_EndDirective directives[] = {
        [CODER_RUN] = ZSTD_e_continue, [CODER_FLUSH] = ZSTD_e_flush, [CODER_END] = ZSTD_e_end};
    ZSTD_inBuffer in = {io->in, io->in_len, 0};
    ZSTD_outBuffer out = {io->out, io->out_cap, io->out_len};
    size_t left = ZSTD_compressStream2(coder, &out, &in, directives[op]);
    io->in += in.pos;
    io->in_len -= in.pos;
    io->out_len = out.pos;
    *done = io->in_len == 0 && (op == CODER_RUN || left == 0);
    return !ZSTD_isError(left);
}

static void close_zstd(void *coder)
{
    ZSTD_freeCCtx(coder);
}

const struct coder_ops compress_zstd = {.name = "zstd",
                                        .open = open_zstd,
                                        .begin = begin_zstd,
                                        .run = run_zstd,
                                        .close = close_zstd,
                                        .is_reusable = true};
