/* SPDX-License-Identifier: Apache-2.0 */
#include "web/status_handler.h"

#include "web/response.h"

bool mk_status_handler_allows(unsigned status)
{
    return (status >= 200 && status < 300 && status != 206) || (status >= 400 && status < 600);
}

bool mk_status_handler_may_have_body(unsigned status)
{
    return status != 204 && status != 205;
}

bool mk_status_handler_is_error(const void *data)
{
    return ((const struct mk_status_handler *)data)->status >= 400;
}

static bool add_text_body(struct mk_response *response, mk_str text)
{
    return mk_response_add_default(response, MK_STR("Content-Type"), MK_STR("text/plain; charset=utf-8")) ==
               0 &&
           mk_response_body_add_text(&response->content, response->arena, text);
}

static enum mk_verdict handle_status(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct mk_status_handler *answer = data;
    (void)request;
    response->status = answer->status;
    if (!answer->text.p)
        return answer->status < 400 ? MK_DONE : MK_ERROR;
    if (add_text_body(response, answer->text))
        return MK_DONE;
    response->status = 503;
    return MK_ERROR;
}

const struct mk_handler mk_status_handler = {
    .name = "status",
    .syntax =
        "STATUS [TEXT], with a status from 200 to 299 or from 400 to 599; 204, 205 and 206 take no TEXT",
    .handle = handle_status,
};
