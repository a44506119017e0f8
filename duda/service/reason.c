/* SPDX-License-Identifier: Apache-2.0 */
#include "service/reason.h"

#include <stdarg.h>
#include <stdio.h>

/* Not in the memory of the handler, which duda_release() may give back. */
int duda_reason(struct duda *d, int error, const char *fmt, ...)
{
    va_list args;
    if (!d->reason)
        d->reason = mk_mem_alloc(sizeof *d->reason);
    if (!d->reason)
        return error;
    d->reason->error = error;
    va_start(args, fmt);
    vsnprintf(d->reason->text, sizeof d->reason->text, fmt, args);
    va_end(args);
    return error;
}

const char *duda_reason_of(const struct duda *d)
{
    bool explains = d->reason && (d->reason->error == d->result || d->result >= 500);
    return explains && d->reason->text[0] ? d->reason->text : NULL;
}
