/* SPDX-License-Identifier: Apache-2.0 */
/* Authentication: clients send the token of the device, programs as a bearer token, and browsers in a cookie. The
 * environment variable DEVICE_TOKEN holds the token; without it, the program makes one and prints it. */
#include "device.h"

#include <monkey/cookie.h>
#include <monkey/text.h>
#include <stdio.h>
#include <stdlib.h>

static char token[65]; /* letters and digits */

/* The token that the client sent; absent if there is none. */
static mk_str request_token(const struct mk_request *request)
{
    mk_str value = mk_request_header(request, MK_STR("Authorization"));
    if (mk_str_eq_nocase(mk_str_first(value, 7), MK_STR("Bearer ")))
        return mk_str_skip(value, 7);
    return mk_request_cookie_view(request, "token");
}

bool auth_check(struct mk_request *request, struct mk_response *response)
{
    if (mk_consttime_eq(request_token(request), mk_str_from_c(token)))
        return true;
    mk_response_set_status(response, 401);
    mk_response_add_header(response, MK_STR("WWW-Authenticate"), MK_STR("Bearer"));
    return false;
}

/* Browsers cannot add a header to the requests of EventSource and WebSocket, but they send cookies. */
static enum mk_verdict log_in(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct mk_cookie cookie = {
        .name = "token", .value = mk_str_from_c(token), .same_site = MK_SAME_SITE_STRICT};
    (void)data;
    if (!auth_check(request, response) || mk_response_add_cookie(request, response, &cookie))
        return MK_ERROR;
    mk_response_set_status(response, 204);
    return MK_DONE;
}

static void make_token(void)
{
    char random[16];
    struct mk_buf out = mk_buf_fixed(token, sizeof token - 1);
    mk_random(random, sizeof random);
    mk_hex_encode(&out, mk_str_of(random, sizeof random));
    fprintf(stderr, "device: the token is %s\n", token);
}

int auth_add(struct mk_server *s)
{
    const char *value = getenv("DEVICE_TOKEN");
    if (value && *value)
        snprintf(token, sizeof token, "%s", value);
    else
        make_token();
    return mk_server_add_route(s, "POST /api/login", log_in, NULL);
}
