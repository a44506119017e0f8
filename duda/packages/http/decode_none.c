/* SPDX-License-Identifier: Apache-2.0 */
/* A build without the package gzip. */
#include "decode.h"

mk_str http_decoder_codings(void)
{
    return MK_STR_NULL;
}

bool http_decoder_knows(mk_str coding)
{
    (void)coding;
    return false;
}

struct http_decoder *http_decoder_new(mk_str coding)
{
    (void)coding;
    return NULL;
}

void http_decoder_free(struct http_decoder *decoder)
{
    (void)decoder;
}

ssize_t http_decoder_read(struct http_decoder *decoder, ssize_t (*read)(void *ctx, char *buf, size_t cap),
                          void *ctx, char *buf, size_t cap)
{
    (void)decoder;
    return read(ctx, buf, cap);
}
