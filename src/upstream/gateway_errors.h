/* SPDX-License-Identifier: Apache-2.0 */
/* What a program behind us writes to its standard error, line by line and never too much. */
#ifndef MK_UPSTREAM_GATEWAY_ERRORS_H
#define MK_UPSTREAM_GATEWAY_ERRORS_H

#include <monkey/str.h>
#include <stdint.h>

enum { MK_GATEWAY_LINE = 800, MK_GATEWAY_ERRORS = 64 * 1024 };

struct mk_gateway_errors {
    void (*say)(void *ctx, mk_str line);
    void *ctx;
    uint32_t seen; /* bytes; those behind MK_GATEWAY_ERRORS do not become lines */
    uint32_t len;
    char line[MK_GATEWAY_LINE];
};

void mk_gateway_errors_add(struct mk_gateway_errors *e, mk_str text);
/* Says an incomplete last line. */
void mk_gateway_errors_end(struct mk_gateway_errors *e);

#endif
