/* SPDX-License-Identifier: Apache-2.0 */
/* A minimal service: `curl localhost:2001/?name=you`, `curl localhost:2001/square/12`. */
#include <duda.h>

static int hello(struct duda_ctx *d)
{
    return duda_printf(d, "hello %s\n", duda_query_or(d, "name", "world"));
}

static int square(struct duda_ctx *d)
{
    int64_t n;
    if (!duda_param_int(d, "n", &n) || n < -1000000 || n > 1000000)
        return 400;
    return duda_printf(d, "%lld\n", (long long)(n * n));
}

DUDA_SERVICE(hello, DUDA_GET("/", hello, "Greets."),
             DUDA_GET("/square/:n<int>", square, "Computes a square."));
