/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "service/duda_ctx.h"

void duda_log_plain(struct duda_ctx *d, enum mk_log_level level, const char *fmt, ...)
{
    char message[DUDA_LOG_MAX];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    if (n < 0)
        return;
    if (d->request)
        mk_request_log(d->request, level, "%s", message);
    else
        mk_worker_log(d->worker_ctx->worker, level, "%s", message);
}

void duda_log(struct duda_ctx *d, enum mk_log_level level, const char *fmt, ...)
{
    char buf[DUDA_LOG_MAX - 128]; /* leaves space for the request ID */
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(buf, sizeof buf, fmt, args);
    va_end(args);
    text.len = n < 0 ? 0 : (size_t)n < sizeof buf ? (size_t)n : sizeof buf - 1;
    duda_log_plain(d, level, "%.*s (%s %s)", MK_STR_ARG(mk_buf_str(&text)), d->request ? "request" : "job",
                   duda_request_id(d).p);
}
