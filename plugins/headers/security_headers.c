/* SPDX-License-Identifier: Apache-2.0 */
#include "security_headers.h"

struct field {
    mk_str name, value;
};

/* clang-format off */
#define FIELD(name, value) {MK_STR_INIT(name), MK_STR_INIT(value)}
/* clang-format on */

/* Headers that are safe for ordinary sites. */
static const struct field on[] = {
    FIELD("X-Content-Type-Options", "nosniff"),
    FIELD("X-Frame-Options", "SAMEORIGIN"),
    FIELD("Referrer-Policy", "strict-origin-when-cross-origin"),
    FIELD("Content-Security-Policy", "frame-ancestors 'self'"),
};

/* Headers for sites that load all resources from their own origin and use no device features. */
static const struct field strict[] = {
    FIELD("X-Content-Type-Options", "nosniff"),
    FIELD("X-Frame-Options", "DENY"),
    FIELD("Referrer-Policy", "no-referrer"),
    FIELD(
        "Content-Security-Policy",
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"),
    FIELD("Permissions-Policy",
          "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"),
    FIELD("Cross-Origin-Opener-Policy", "same-origin"),
    FIELD("Cross-Origin-Resource-Policy", "same-origin"),
};

/* This header is sent only over TLS (RFC 6797, section 7.2). */
static const struct field transport = FIELD("Strict-Transport-Security", "max-age=31536000");

static void add_header_if_missing(struct response_facts *f, const struct field *field)
{
    if (!headers_response_has(f, field->name))
        headers_response_add(f, field->name, field->value);
}

void headers_security_headers_apply(enum secure how, struct response_facts *facts)
{
    const struct field *fields = how == SECURE_STRICT ? strict : on;
    size_t n = how == SECURE_STRICT ? MK_LEN(strict) : MK_LEN(on);
    if (how == SECURE_OFF)
        return;
    for (size_t i = 0; i < n; i++)
        add_header_if_missing(facts, &fields[i]);
    if (how == SECURE_STRICT && mk_str_eq(mk_request_scheme(facts->request), MK_STR("https")))
        add_header_if_missing(facts, &transport);
}
