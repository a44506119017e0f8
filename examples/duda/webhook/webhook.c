/* SPDX-License-Identifier: Apache-2.0 */
/* Delivers events to URLs that users have entered (webhooks). `AllowHosts` permits any host with a public address,
 * so that no user can reach an internal server. The receiver verifies the signature: HMAC-SHA256 of the body. */
#define DUDA_SETTINGS webhook_table
#define DUDA_USE      "duda-http"
#include <duda.h>
#include <duda/http.h>
#include <errno.h>
#include <monkey/text.h>

enum { SIGNATURE_SIZE = 32, TIMEOUT_MS = 10000, URL_MAX = 2000, TEXT_MAX = 10000 };

struct webhook {
    mk_str secret;
};

static const struct mk_conf_key webhook_keys[] = {{.name = "Secret",
                                                   .type = MK_CONF_CUSTOM,
                                                   .flags = MK_CONF_REQUIRED,
                                                   MK_CONF_AT(struct webhook, secret),
                                                   .parse = duda_secret,
                                                   .syntax = DUDA_SECRET_SYNTAX}};
static const struct mk_conf_table webhook_table = {
    .section = "WEBHOOK", .keys = webhook_keys, .n = MK_LEN(webhook_keys), .size = sizeof(struct webhook)};

struct delivery {
    mk_str url, event;
};

static const struct duda_schema_field members[] = {
    DUDA_STRING(struct delivery, url, .min_length = 1, .max_length = URL_MAX),
    DUDA_STRING(struct delivery, event, .min_length = 1, .max_length = TEXT_MAX),
};
static const struct duda_schema schema = DUDA_SCHEMA(struct delivery, members);

static mk_str sign(struct duda_ctx *d, mk_str body)
{
    const struct webhook *settings = duda_settings(d);
    char hash[SIGNATURE_SIZE], text[2 * SIGNATURE_SIZE];
    struct mk_buf hex = mk_buf_fixed(text, sizeof text);
    mk_hmac_sha256(settings->secret, body, hash);
    mk_hex_encode(&hex, mk_str_of(hash, sizeof hash));
    return duda_sprintf(d, "sha256=%.*s", MK_STR_ARG(mk_buf_str(&hex)));
}

static int deliver(struct duda_ctx *d)
{
    struct delivery delivery;
    struct duda_http_response response;
    int e = duda_bind_json(d, &schema, &delivery, NULL);
    if (e)
        return e;
    const struct mk_header signature = {MK_STR("X-Signature"), sign(d, delivery.event)};
    const struct duda_http_request request = {.url = delivery.url,
                                              .headers = &signature,
                                              .n_headers = 1,
                                              .content_type = MK_STR("text/plain"),
                                              .body = delivery.event,
                                              .timeout_ms = TIMEOUT_MS};
    e = duda_http_fetch(d, duda_http_find(d, "webhooks"), &request, &response);
    if (e == -EINVAL || e == -EPERM)
        return duda_problem(d, 422, "%.*s", MK_STR_ARG(response.error));
    if (e)
        return e == -ECANCELED ? e : duda_problem(d, 502, "%.*s", MK_STR_ARG(response.error));
    if (response.status < 200 || response.status > 299)
        return duda_problem(d, 502, "the receiver responded with %u", response.status);
    return duda_printf(d, "delivered\n");
}

DUDA_SERVICE(webhook,
             DUDA_POST("/deliveries", deliver, "Delivers an event to a URL.", .request_body = &schema));
