/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/grpc.h"

#include <monkey/response.h>
#include <monkey/text.h>

#include "http/status.h"

/* gRPC status codes. */
enum {
    DEADLINE_EXCEEDED = 4,
    PERMISSION_DENIED = 7,
    RESOURCE_EXHAUSTED = 8,
    UNIMPLEMENTED = 12,
    INTERNAL = 13,
    UNAVAILABLE = 14,
    UNAUTHENTICATED = 16,
};

bool mk_grpc_is_request(const struct mk_request *request)
{
    const mk_str grpc = MK_STR("application/grpc");
    if (mk_request_version(request) < 20 || mk_request_method(request) != MK_METHOD_POST)
        return false;
    mk_str type = mk_request_header(request, MK_STR("Content-Type"));
    if (!mk_str_eq_nocase(mk_str_first(type, grpc.len), grpc))
        return false;
    return type.len == grpc.len || type.p[grpc.len] == '+' || type.p[grpc.len] == ';';
}

unsigned mk_grpc_status(unsigned http_status)
{
    switch (http_status) {
    case 401:
        return UNAUTHENTICATED;
    case 403:
        return PERMISSION_DENIED;
    case 404:
        return UNIMPLEMENTED;
    case 408:
    case 504:
        return DEADLINE_EXCEEDED;
    case 413:
    case 414:
    case 431:
        return RESOURCE_EXHAUSTED;
    case 429:
    case 502:
    case 503:
        return UNAVAILABLE;
    default:
        return INTERNAL;
    }
}

enum mk_verdict mk_grpc_respond_with_error(struct mk_response *response, unsigned http_status)
{
    char digits[2];
    unsigned status = mk_grpc_status(http_status);
    size_t n = status >= 10 ? 2 : 1;
    digits[0] = (char)('0' + (n == 2 ? status / 10 : status));
    digits[1] = (char)('0' + status % 10);
    bool is_written =
        !mk_response_set_status(response, 200) &&
        !mk_response_add_header_nocopy(response, MK_STR("Content-Type"), MK_STR("application/grpc")) &&
        !mk_response_add_header(response, MK_STR("grpc-status"), mk_str_of(digits, n)) &&
        !mk_response_add_header_nocopy(response, MK_STR("grpc-message"), mk_status_text(http_status)) &&
        !mk_response_set_body_nocopy(response, MK_STR(""));
    if (is_written)
        return MK_DONE;
    (void)mk_response_set_status(response, http_status);
    return MK_ERROR;
}
