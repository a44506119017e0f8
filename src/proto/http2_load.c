/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>

#include "build_id.h"
#include "os/module.h"
#include "proto/http2.h"

/* Defined in programs with HTTP/2 built in. */
extern const struct mk_http2_module mk_http2_module __attribute__((weak));

static const struct mk_http2_module *_Atomic module;
static char why_not[MK_MODULE_WHY];

static void load(void)
{
    const struct mk_module wanted = {.name = "http2",
                                     .symbol = "mk_http2_module",
                                     .needs = "nghttp2",
                                     .abi = MK_BUILD_ID,
                                     .built_in = &mk_http2_module};
    module = mk_module_load(&wanted, why_not);
}

const struct mk_http2_module *mk_http2_load(const char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (why)
        *why = module ? NULL : why_not;
    return module;
}

void mk_http2_pack_head_if_loaded(struct mk_buf *out, const struct mk_field_block *whole, uint64_t size)
{
    const struct mk_http2_module *loaded = module;
    if (loaded)
        loaded->pack_head(out, whole, size);
}
