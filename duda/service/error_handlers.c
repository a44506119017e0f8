/* SPDX-License-Identifier: Apache-2.0 */
#include "service/error_handlers.h"

#include <duda/body.h>
#include <duda/error.h>
#include <string.h>

#include "service/memory.h"
#include "service/response.h"
#include "service/result.h"
#include "service/route_table.h"

static bool is_response(int result)
{
    return result == 0 || result == DUDA_HANDLED || (result >= 200 && result < 400);
}

/* Discards the output of an error handler that did not respond. */
static void discard_response(struct duda_ctx *d)
{
    mk_buf_clear(&d->out);
    d->out_at = 0;
    d->output = DUDA_OUTPUT_NONE;
    (void)mk_response_set_body_nocopy(d->response, MK_STR(""));
    (void)mk_response_remove_header(d->response, MK_STR("Content-Type"));
    (void)mk_response_set_status(d->response, d->extras->error_status);
}

/* Replaces the error with that of the failed error handler; the outer error handlers respond to it. */
static void replace_error(struct duda_ctx *d, int result)
{
    const struct duda_route *r = d->middleware;
    bool is_status = result >= 400 && result <= 599;
    unsigned status = is_status ? (unsigned)result : result < 0 ? duda_result_errno_to_status(result) : 500;
    d->result = result;
    d->extras->error_status = status;
    const char *reason = duda_result_reason(d);
    if (status >= 500)
        duda_log(d, MK_LOG_WARN, "%s() in %s:%d, an error handler, returned %d%s%s%s%s", r->name, r->file,
                 r->line, result, result < 0 ? ": " : "", result < 0 ? strerror(-result) : "",
                 reason ? ": " : "", reason ? reason : "");
}

/* Returns the recorded error, unless its status has changed since. */
static const struct duda_client_error *find_client_error(const struct duda_ctx *d)
{
    const struct duda_client_error *error = d->extras ? d->extras->client_error : NULL;
    return error && error->status == d->extras->error_status ? error : NULL;
}

int duda_error_handlers_run(struct duda_ctx *d)
{
    for (const struct duda_middleware *h = d->extras->errors; h; h = h->outer) {
        d->middleware = d->result_route = h->entry;
        int result = h->entry->fn(d);
        if (d->output == DUDA_OUTPUT_STREAMED)
            return result;
        if (d->cancel_error)
            break;
        if (is_response(result))
            return result;
        if (result != DUDA_NEXT)
            replace_error(d, result);
        discard_response(d);
    }
    bool has_detail = !d->cancel_error && find_client_error(d) && !duda_client_prefers_html(d);
    return has_detail ? duda_error_problem(d) : DUDA_NEXT;
}

/* ---- For error handlers ---- */

unsigned duda_error_status(struct duda_ctx *d)
{
    return duda_ctx_runs_error_handlers(d) ? d->extras->error_status : 0;
}

const char *duda_error_reason(struct duda_ctx *d)
{
    const struct duda_reason *reason = d->extras ? d->extras->reason : NULL;
    return reason && reason->text[0] ? reason->text : NULL;
}

const char *duda_error_detail(struct duda_ctx *d)
{
    const struct duda_client_error *error = duda_error_status(d) ? find_client_error(d) : NULL;
    return error ? error->detail : NULL;
}

const struct duda_validation_errors *duda_error_validation(struct duda_ctx *d)
{
    const struct duda_client_error *error = duda_error_status(d) ? find_client_error(d) : NULL;
    return error && error->validation.n ? &error->validation : NULL;
}

duda_verdict duda_error_problem(struct duda_ctx *d)
{
    unsigned status = duda_error_status(d);
    const struct duda_client_error *error = status ? find_client_error(d) : NULL;
    if (error && error->validation.n)
        return duda_problem_errors(d, status, &error->validation);
    const char *reason = duda_memory_is_dev_mode(d->worker_ctx) ? duda_error_reason(d) : NULL;
    mk_str detail = reason  ? mk_str_from_c(reason)
                    : error ? mk_str_from_c(error->detail)
                            : mk_status_detail(status);
    return status ? duda_problem(d, status, "%.*s", MK_STR_ARG(detail)) : 500;
}
