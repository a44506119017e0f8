/* SPDX-License-Identifier: Apache-2.0 */
/* Interface for the lower layers. */
#include "connection/http2.h"
#include "http2/h2.h"
#include "http2/h2_cached_head.h"
#include "http2/hpack.h"

extern const struct mk_http2_module mk_http2_module;

const struct mk_http2_module mk_http2_module = {
    .vendor = mk_hpack_library,
    .ops = &mk_h2_ops,
    .serve = mk_h2_serve,
    .pack_head = mk_h2_cached_head_write,
    .encode_common_headers = mk_h2_cached_head_write_date,
};
