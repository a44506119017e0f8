/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the request body. */
#include "service/request_body.h"

#include <errno.h>

#include "service/suspend.h"

int duda_request_body_check_coding(struct duda_ctx *d)
{
    mk_str coding = d->request ? mk_request_content_coding(d->request) : MK_STR_NULL;
    if (!coding.p)
        return 0;
    (void)duda_header_set(d, "Accept-Encoding", MK_STR("identity"));
    return duda_reason(d, 415, "the content has the Content-Encoding %.*s, but only identity is accepted",
                       MK_STR_ARG(mk_str_first(coding, 32)));
}

ssize_t duda_read(struct duda_ctx *d, char *buf, size_t cap)
{
    for (;;) {
        if (d->cancel_error)
            return duda_suspend_until(d, DUDA_SUSPEND_FOR_INPUT);
        if (!d->request)
            return 0;
        ssize_t n = mk_request_read(d->request, buf, cap);
        if (n != -EAGAIN)
            return n == -ECONNRESET ? duda_suspend_cancel(d, -ECANCELED) : n;
        int e = duda_suspend_until(d, DUDA_SUSPEND_FOR_INPUT);
        if (e)
            return e;
    }
}

static int read_body_into(struct duda_ctx *d, struct mk_buf *all, size_t max)
{
    ssize_t n;
    do {
        if (!mk_buf_reserve(all, 4096))
            return all->len >= max ? -EMSGSIZE : -ENOMEM;
        n = duda_read(d, all->p + all->len, all->cap - all->len);
        if (n > 0)
            all->len += (size_t)n;
    } while (n > 0 && all->len <= max);
    return all->len > max ? -EMSGSIZE : (int)n;
}

/* Logs only a debug message, because the client has caused the error. `monkey run` shows the message on the
 * error page. */
static int reject_long_body(struct duda_ctx *d, size_t max)
{
    duda_log(d, MK_LOG_DEBUG,
             "the body is longer than the %zu bytes that the call of duda_read_all() accepts", max);
    return -EMSGSIZE;
}

int duda_read_all(struct duda_ctx *d, size_t max, mk_str *out)
{
    int64_t length = d->request ? mk_request_length(d->request) : 0;
    if (length > 0 && (uint64_t)length > max)
        return reject_long_body(d, max);
    struct duda_scratch_buf all;
    int e = duda_scratch_buf_begin(d, &all, max + (8 << 10));
    e = e ? e : read_body_into(d, &all.buf, max);
    *out = e ? MK_STR_NULL : duda_strdup(d, mk_buf_str(&all.buf));
    duda_wait_end(&all.wait);
    if (e == -EMSGSIZE)
        return reject_long_body(d, max);
    return !e && !out->p ? -ENOMEM : e;
}
