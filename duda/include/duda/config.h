/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration sections of services: typed keys, and secrets stored outside the configuration. */
#ifndef DUDA_CONFIG_H
#define DUDA_CONFIG_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Returns the configuration values of the service: a struct filled from its section or, if the section is
 * missing, with the defaults; NULL if the service declares no section. Before the first #include, name the
 * table that describes the section (see monkey/config.h for tables; the scope is MK_CONF_SERVER):
 *
 *     #define DUDA_SETTINGS shop_table
 *     #include <duda.h>
 *
 *     struct shop { uint32_t items_max; mk_str key, photos; };
 *     static const struct mk_conf_key shop_keys[] = {
 *         {.name = "ItemsMax", .type = MK_CONF_NUM, MK_CONF_AT(struct shop, items_max),
 *          .default_value = "100"},
 *         {.name = "Key", .type = MK_CONF_CUSTOM, MK_CONF_AT(struct shop, key), .parse = duda_secret,
 *          .syntax = DUDA_SECRET_SYNTAX},
 *         {.name = "Photos", .type = MK_CONF_TEXT, MK_CONF_AT(struct shop, photos), .flags = MK_CONF_WRITES},
 *     };
 *     static const struct mk_conf_table shop_table = {
 *         .section = "SHOP", .keys = shop_keys, .n = MK_LEN(shop_keys), .size = sizeof(struct shop)};
 *
 *     const struct shop *shop = duda_settings(d);
 *
 * The value of a key of type MK_CONF_TEXT with the flag MK_CONF_READS or MK_CONF_WRITES is a path, relative
 * to the folder of the configuration file; the member contains the absolute path. The sandbox then permits
 * the workers to read it or, with MK_CONF_WRITES, to create files in this folder, which must exist.
 * `monkey test` replaces the folder with an empty temporary one.
 */
MK_API const void *duda_settings(struct duda_ctx *d);

/** Syntax of a secret's value. */
#define DUDA_SECRET_SYNTAX "env:NAME or file:PATH"
enum {
    DUDA_SECRET_MAX = 64 << 10 /**< maximum size of a secret in bytes */
};

/**
 * Parses a secret into a mk_str (`parse` of a key of type MK_CONF_CUSTOM). The value comes from an
 * environment variable or from a file, which is read with the server's privileges when the configuration is
 * loaded. A trailing line ending is removed, and an empty secret is an error. `monkey -T` does not print the
 * secret.
 */
MK_API bool duda_secret(const struct mk_conf_ctx *ctx, mk_str value, void *field);

#ifdef __cplusplus
}
#endif

#endif
