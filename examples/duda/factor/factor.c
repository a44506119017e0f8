/* SPDX-License-Identifier: Apache-2.0 */
/* Runs another program: `factor` of coreutils finds the prime factors of a number. The program reads the
 * number from standard input, not from an argument, so a client cannot pass options. It is killed if it takes
 * too long. */
#define DUDA_USE "duda-subprocess"
#include <duda.h>
#include <duda/subprocess.h>
#include <errno.h>

enum { OUTPUT_MAX = 4096, TIME_MS = 5000, MEMORY_MAX = 256 << 20 };

static int show(struct duda_ctx *d)
{
    static const char *const argv[] = {"/usr/bin/factor", NULL};
    const struct duda_subprocess_options factor = {.argv = argv, .timeout_ms = TIME_MS, .memory = MEMORY_MAX};
    mk_str output, input = duda_sprintf(d, "%.*s\n", MK_STR_ARG(duda_param(d, "number")));
    int status, e = duda_subprocess_run(d, &factor, input, OUTPUT_MAX, &output, &status);
    if (e == -ETIME)
        return duda_problem(d, 422, "this number takes too long");
    if (!e && status)
        return duda_problem(d, 422, "this is no number");
    return e ? e : duda_write(d, output);
}

DUDA_SERVICE(factor, DUDA_GET("/:number", show, "The prime factors of a number."));
