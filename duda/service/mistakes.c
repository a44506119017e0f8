/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about probable mistakes in a service, under `monkey run`. */
#include <duda/log.h>
#include <stdio.h>

#include "service/memory.h"

enum { MISTAKES_MAX = 64 };

/* Returns whether the subject is new. After MISTAKES_MAX subjects, none is. */
static bool remember_subject(const void *subject)
{
    static const void *known[MISTAKES_MAX];
    static size_t n;
    for (size_t i = 0; i < n; i++)
        if (known[i] == subject)
            return false;
    if (n == MISTAKES_MAX)
        return false;
    known[n++] = subject;
    return true;
}

void duda_log_mistake(struct duda_ctx *d, const void *subject, const char *fmt, ...)
{
    char message[DUDA_LOG_MAX];
    va_list args;
    if (!duda_memory_is_dev_mode(d->worker_ctx) || !remember_subject(subject))
        return;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    duda_log_handler(d, MK_LOG_WARN, "%s", message);
}
