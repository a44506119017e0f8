/* SPDX-License-Identifier: Apache-2.0 */
#include "service/result.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "service/extras.h"
#include "service/response.h"
#include "service/route_table.h"

/* The C library may lack this function: musl, and glibc before 2.32. */
extern const char *strerrorname_np(int error) __attribute__((weak));

const char *duda_errno_text(int result, char out[DUDA_ERRNO_TEXT_SIZE])
{
    const char *name = strerrorname_np ? strerrorname_np(-result) : NULL;
    if (name)
        snprintf(out, DUDA_ERRNO_TEXT_SIZE, "-%s (%s)", name, strerror(-result));
    else
        snprintf(out, DUDA_ERRNO_TEXT_SIZE, "%d (%s)", result, strerror(-result));
    return out;
}

/* Allocates the reason on the heap: duda_arena_rewind() may free memory of the handler. */
int duda_reason(struct duda_ctx *d, int error, const char *fmt, ...)
{
    va_list args;
    struct duda_extras *extras = duda_extras_get(d);
    if (extras && !extras->reason)
        extras->reason = mk_mem_alloc(sizeof *extras->reason);
    if (!extras || !extras->reason)
        return error;
    extras->reason->error = error;
    va_start(args, fmt);
    vsnprintf(extras->reason->text, sizeof extras->reason->text, fmt, args);
    va_end(args);
    return error;
}

bool duda_result_has_reason(const struct duda_ctx *d, int error)
{
    const struct duda_reason *reason = d->extras ? d->extras->reason : NULL;
    return reason && reason->error == error;
}

const char *duda_result_reason(struct duda_ctx *d)
{
    const struct duda_reason *reason = d->extras ? d->extras->reason : NULL;
    bool explains = reason && (reason->error == d->result || d->result >= 500);
    return explains && reason->text[0] ? reason->text : NULL;
}

enum { ERRNO_MAX = 4095 };

/* The table of duda_fn in duda/service.h; all other errors become 500. */
static const struct {
    int error;
    unsigned status;
} statuses[] = {
    {-EBADMSG, 400},      {-EKEYREJECTED, 401}, {-EKEYEXPIRED, 401},  {-EKEYREVOKED, 401}, {-EACCES, 403},
    {-EPERM, 403},        {-ENOENT, 404},       {-EEXIST, 409},       {-ESTALE, 409},      {-EMSGSIZE, 413},
    {-EFBIG, 413},        {-E2BIG, 413},        {-EDQUOT, 429},       {-EOPNOTSUPP, 501},  {-ENOMEM, 503},
    {-EAGAIN, 503},       {-EBUSY, 503},        {-ECONNREFUSED, 503}, {-ECONNRESET, 503},  {-EPIPE, 503},
    {-EHOSTUNREACH, 503}, {-ENETUNREACH, 503},  {-EXFULL, 503},       {-ENODEV, 503},      {-ENOKEY, 503},
    {-ETIME, 503},        {-ESHUTDOWN, 503},    {-ETIMEDOUT, 504},    {-ENOSPC, 507},      {-ERANGE, 422},
};

unsigned duda_result_errno_to_status(int error)
{
    for (size_t i = 0; i < MK_LEN(statuses); i++)
        if (statuses[i].error == error)
            return statuses[i].status;
    return 500;
}

unsigned duda_response_status(struct duda_ctx *d)
{
    int result = d->result;
    bool is_status = result >= 200 && result <= 599;
    if (!d->response)
        return 0;
    if (d->output == DUDA_OUTPUT_STREAMED || d->output == DUDA_OUTPUT_TUNNEL || result == DUDA_HANDLED)
        return mk_response_status(d->response);
    if (result == 0)
        return duda_response_is_set(d) ? mk_response_status(d->response) : 204;
    return is_status ? (unsigned)result : result < 0 ? duda_result_errno_to_status(result) : 500;
}

void duda_result_add_www_authenticate(struct duda_ctx *d)
{
    (void)mk_response_add_default(d->response, MK_STR("WWW-Authenticate"),
                                  MK_STR("Bearer error=\"invalid_token\""));
}

/* May this middleware return DUDA_NEXT? */
static bool is_guard(const struct duda_route *r)
{
    return r->kind == DUDA_IS_BEFORE || r->kind == DUDA_IS_AROUND;
}

/* Without a request there is nothing to send: any result above 0 counts as 0. */
static bool is_valid_result(struct duda_ctx *d)
{
    int r = d->result;
    if (r == 0) /* 0 from middleware without a response: a predicate returned false */
        return !is_guard(d->result_route) || duda_response_is_set(d);
    return r == DUDA_HANDLED || (r >= 200 && r <= 599) || (r < 0 && r >= -ERRNO_MAX) ||
           (!d->request && r > 0);
}

/* Errors caused by clients are not logged, except 403, because the permissions of a file on this machine may
 * be the cause. A missed deadline is not a failure of the handler, unless a function recorded what took so
 * long. */
static bool is_logged_failure(struct duda_ctx *d, const char *message)
{
    int r = d->result;
    if (r >= 0)
        return r >= 500 && r <= 599 && message;
    if (r == -ECANCELED || r == -ESHUTDOWN || r == -ETIMEDOUT)
        return r == -ETIMEDOUT && message;
    unsigned status = duda_result_errno_to_status(r);
    return !d->request || status >= 500 || status == 403 || message;
}

static void log_invalid_result(struct duda_ctx *d, const struct duda_route *r)
{
    const struct duda_route_entry *entry = d->route_entry;
    duda_log(d, MK_LOG_ERROR,
             "%s() in %s:%d, for the route %s %.*s, returned %d, which is %s: responding with 500", r->name,
             r->file, r->line, entry->route->method ? entry->route->method : "", MK_STR_ARG(entry->pattern),
             d->result,
             is_guard(r) ? "neither DUDA_NEXT nor a valid result (use DUDA_REQUIRE() for a predicate)"
                         : "neither 0, a status from 200 to 599, nor a negated errno value");
}

void duda_result_log_source(struct duda_ctx *d)
{
    const struct duda_route *r = d->result_route, *handler = d->route_entry->route;
    const char *reason = duda_result_reason(d), *colon = reason ? ": " : "";
    reason = reason ? reason : "";
    if (r->kind == DUDA_IS_REQUIRE)
        duda_log(d, MK_LOG_DEBUG, "%s() in %s:%d, a guard of %s(), returned false: responding with %d",
                 r->name, r->file, r->line, handler->name, d->result);
    else if (r != handler)
        duda_log(d, MK_LOG_DEBUG, "%s() in %s:%d, a guard of %s(), returned %d%s%s", r->name, r->file,
                 r->line, handler->name, d->result, colon, reason);
    else
        duda_log(d, MK_LOG_DEBUG, "%s() in %s:%d returned %d%s%s", r->name, r->file, r->line, d->result,
                 colon, reason);
}

/* Replaces the result with 503, because the handler's response may be meant for a client that is not logged
 * in. Keeps the reason that the store has recorded, if any. */
static void fail_with_session_error(struct duda_ctx *d)
{
    d->result = 503;
    if (!duda_result_reason(d))
        (void)duda_reason(d, d->session_error, "the session cannot be read: %s", strerror(-d->session_error));
}

/* Returns whether the handler succeeded although the form could not be received, so it may have seen an empty
 * form. */
static bool has_hidden_form_error(struct duda_ctx *d)
{
    return d->form_error && !d->cancel_error && d->output != DUDA_OUTPUT_TUNNEL &&
           (d->result == DUDA_HANDLED || (d->result >= 0 && d->result < 400));
}

void duda_result_validate(struct duda_ctx *d)
{
    char text[DUDA_ERRNO_TEXT_SIZE];
    const struct duda_route *r = d->result_route;
    if (has_hidden_form_error(d))
        d->result = d->form_error;
    if (d->session_error && !d->cancel_error && d->request && d->output != DUDA_OUTPUT_TUNNEL)
        fail_with_session_error(d);
    const char *message = duda_result_reason(d);
    if (!is_valid_result(d)) {
        log_invalid_result(d, r);
        d->result = 500;
    } else if (is_logged_failure(d, message) && d->result < 0) {
        duda_log(d, MK_LOG_WARN, "%s() in %s:%d answered %s%s%s", r->name, r->file, r->line,
                 duda_errno_text(d->result, text), message ? ": " : "", message ? message : "");
    } else if (is_logged_failure(d, message)) {
        duda_log(d, MK_LOG_WARN, "%s() in %s:%d answered %d: %s", r->name, r->file, r->line, d->result,
                 message);
    } else if (d->result < 0 && d->result != -ECANCELED) {
        duda_log(d, MK_LOG_DEBUG, "%s() in %s:%d answered %s", r->name, r->file, r->line,
                 duda_errno_text(d->result, text));
    }
}
