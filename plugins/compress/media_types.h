/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of media types: "text/html", "text/" and a star, or "application/" and a star and "+json". */
#ifndef COMPRESS_MEDIA_TYPES_H
#define COMPRESS_MEDIA_TYPES_H

#include <monkey/config.h>

/* The types that compress well and are not already compressed. */
#define COMPRESS_TYPES                                                                                       \
    "text/* application/json application/*+json application/javascript application/x-javascript "            \
    "application/xml "                                                                                       \
    "application/*+xml application/wasm application/x-ndjson application/yaml application/toml "             \
    "application/sql "                                                                                       \
    "application/rtf application/vnd.ms-fontobject font/ttf font/otf font/collection image/svg+xml "         \
    "image/bmp "                                                                                             \
    "image/x-icon image/vnd.microsoft.icon model/*"

struct media_types {
    mk_str *v; /* in lower case */
    size_t n;
};

/* Implements mk_conf_key.parse and .show. */
bool compress_media_types_parse(const struct mk_conf_ctx *ctx, mk_str value, void *field);
bool compress_media_types_show(const void *field, size_t i, struct mk_buf *out);

/* `type` is the value of a Content-Type header; its parameters are ignored. */
bool compress_media_types_contain(const struct media_types *t, mk_str type);

#endif
