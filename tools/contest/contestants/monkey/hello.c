/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic response: a handler like that of any plugin. */
#include <monkey/plugin.h>

static enum mk_verdict send_greeting(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)data;
    mk_response_add_header(response, MK_STR("Content-Type"), MK_STR("text/plain"));
    mk_response_set_body(response, MK_STR(CONTEST_HELLO));
    return MK_DONE;
}

static const struct mk_handler handler = {
    .name = "contest_hello",
    .methods = MK_METHOD_BIT(MK_METHOD_GET),
    .handle = send_greeting,
};

MK_PLUGIN(contest) = {
    MK_PLUGIN_HEAD,
    .name = "contest",
    .version = "1.0",
    .help = "Says hello.",
    .handlers = (const struct mk_handler *const[]){&handler, NULL},
};
