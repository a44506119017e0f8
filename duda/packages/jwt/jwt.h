/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the package jwt. */
#ifndef JWT_JWT_H
#define JWT_JWT_H

#include <duda/jwt.h>

#include "common/package.h"
#include "common/package_jwks.h"

struct jwt_settings {
    struct package_settings base;
    mk_str audience, jwks_url, http_client, key, roles_claim, realm;
    enum duda_jwt_algorithm algorithm;
    uint32_t leeway_ms;
};

/* A section in one worker. */
struct jwt_section {
    const struct jwt_settings *settings;
    struct duda_jwt_key *key; /* NULL: the keys are those of `jwks` */
    struct package_jwks jwks;
};
struct jwt_section *jwt_section_find(struct duda_ctx *d, const char *name);

#endif
