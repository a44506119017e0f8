/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#define AT(member) MK_CONF_AT(struct tracing_settings, member)

static const struct mk_conf_key keys[] = {
    {.name = "RequestId",
     .type = MK_CONF_BOOL,
     AT(request_id),
     .default_value = "off",
     .help =
         MK_HELP("Gives each request an ID, which is in all log lines about the request, and in the header "
                 "X-Request-Id of the response and of requests to backends.")},
};

const struct mk_conf_table tracing_table = {
    .section = "TRACING",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = MK_HELP("Request IDs."),
    .size = sizeof(struct tracing_settings),
    .scope = MK_CONF_VHOST,
};
