/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/http2.h"

/* Defined by src/http2 if built in. */
extern const struct mk_http2_module mk_http2_module __attribute__((weak));

const struct mk_http2_module *mk_http2_get_module(void)
{
    return &mk_http2_module;
}
