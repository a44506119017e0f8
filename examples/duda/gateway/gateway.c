/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches the requested path from a backend, and returns its response and the time it took. The call suspends
 * only this handler; the worker serves other clients in the meantime. To forward requests unchanged, use a
 * route to `proxy`, which needs no code. */
#define DUDA_USE "duda-http"
#include <duda.h>
#include <duda/http.h>
#include <errno.h>

static int ask(struct duda_ctx *d)
{
    const struct duda_http_request request = {.target = mk_request_raw_target(duda_request(d))};
    struct duda_http_response response;
    uint64_t begin = mk_worker_now_ms(duda_worker(d));
    int e = duda_http_fetch(d, duda_http_find(d, "behind"), &request, &response);
    if (e == -ECANCELED)
        return e;
    if (e) {
        duda_log(d, MK_LOG_WARN, "%.*s", MK_STR_ARG(response.error));
        return duda_problem(d, e == -ETIMEDOUT ? 504 : 502, "the service behind does not answer");
    }
    const struct duda_entry values[] = {
        {"status", duda_value_unsigned(response.status)},
        {"milliseconds", duda_value_unsigned(mk_worker_now_ms(duda_worker(d)) - begin)},
        {"type", duda_value_text(duda_http_header(&response, "Content-Type"))},
        {"content", duda_value_text(response.body)},
    };
    return duda_send_json(d, duda_value_map(values, MK_LEN(values)));
}

DUDA_SERVICE(gateway, DUDA_GET("/*path", ask, "Asks the other service for the same path."));
