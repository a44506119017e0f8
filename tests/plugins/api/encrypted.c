/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the TLS properties of a request, and provides certificates. */
#include <inttypes.h>

#include <monkey/plugin.h>

struct bring {
    mk_str certificate, key, challenges;
};

static const struct mk_conf_key keys[] = {
    {.name = "Bring", .type = MK_CONF_TEXT, MK_CONF_AT(struct bring, certificate)},
    {.name = "BringKey", .type = MK_CONF_TEXT, MK_CONF_AT(struct bring, key)},
    {.name = "Challenges", .type = MK_CONF_TEXT, MK_CONF_AT(struct bring, challenges)},
};

static const struct mk_conf_table table = {.section = "ENCRYPTED",
                                           .keys = keys,
                                           .n = sizeof keys / sizeof keys[0],
                                           .size = sizeof(struct bring),
                                           .scope = MK_CONF_VHOST,
                                           .help = "What a test wants to bring."};

static int host(struct mk_config *config, struct mk_vhost *h, void *data, void **host_data)
{
    const struct bring *b = mk_config_section(config, &table, NULL);
    (void)h, (void)data, (void)host_data;
    if (b && b->certificate.p && mk_config_has_tls(config))
        mk_config_add_certificate(config, b->certificate.p, b->key.p);
    if (b && b->challenges.p)
        mk_config_tls_challenges(config, b->challenges.p);
    return 0;
}

static void line(struct mk_buf *out, const char *name, mk_str value)
{
    if (value.p)
        mk_buf_addf(out, "%s=%.*s\n", name, (int)value.len, value.p);
}

static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
{
    char buffer[4096];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    struct mk_tls_info tls;
    (void)data;
    line(&out, "scheme", mk_request_scheme(request));
    if (mk_request_tls(request, &tls)) {
        line(&out, "version", tls.version);
        line(&out, "cipher", tls.cipher);
        line(&out, "protocol", tls.protocol);
        line(&out, "name", tls.server_name);
        line(&out, "resumed", tls.resumed ? MK_STR("yes") : MK_STR("no"));
        line(&out, "subject", tls.client_subject);
        line(&out, "issuer", tls.client_issuer);
        line(&out, "serial", tls.client_serial);
        line(&out, "fingerprint", tls.client_fingerprint);
        mk_buf_addf(&out, "expires=%" PRId64 "\n", tls.client_expires);
        struct mk_vhost_certificate shown = {0};
        (void)mk_vhost_certificate_get(mk_request_vhost(request), &shown);
        mk_buf_addf(&out, "ends=%" PRId64 "\n", shown.not_after);
    }
    return mk_response_set_body(response, mk_buf_str(&out)) ? MK_ERROR : MK_DONE;
}

static const struct mk_handler encrypted = {
    .name = "encrypted", .methods = MK_METHOD_BIT(MK_METHOD_GET), .handle = handle};

MK_PLUGIN(encrypted) = {
    MK_PLUGIN_HEAD,
    .name = "encrypted",
    .sections = (const struct mk_conf_table *const[]){&table, NULL},
    .handlers = (const struct mk_handler *const[]){&encrypted, NULL},
    .host = host,
};
