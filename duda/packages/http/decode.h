/* SPDX-License-Identifier: Apache-2.0 */
/* Decompresses a response body: the content codings gzip and deflate (RFC 9110, section 8.4.1). */
#ifndef DUDA_HTTP_DECODE_H
#define DUDA_HTTP_DECODE_H

#include <duda/http.h>

struct http_decoder;

/* The value of Accept-Encoding; absent: this build decodes nothing. */
mk_str http_decoder_codings(void);
/* Returns whether there is a decoder for this value of Content-Encoding. */
bool http_decoder_knows(mk_str coding);
/* Creates a decoder. Returns NULL if out of memory. */
struct http_decoder *http_decoder_new(mk_str coding);
void http_decoder_free(struct http_decoder *decoder);
/* Reads encoded bytes with read(ctx), and returns the number of decoded bytes in `buf`; 0 at the end;
 * -EILSEQ: the body is malformed or truncated; -ENOMEM; or an error of read(), such as -EAGAIN. */
ssize_t http_decoder_read(struct http_decoder *decoder, ssize_t (*read)(void *ctx, char *buf, size_t cap),
                          void *ctx, char *buf, size_t cap);

#endif
