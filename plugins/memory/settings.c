/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#define AT(member) MK_CONF_AT(struct memory_settings, member)

enum {
    SUBJECTS =
        MK_CONDITION_PATH | MK_CONDITION_FROM | MK_CONDITION_METHOD | MK_CONDITION_HOST | MK_CONDITION_HEADER
};

static bool parse_exception(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct memory_exceptions *e = field;
    struct mk_conditions *conditions = mk_conditions_new(ctx);
    mk_str written = mk_conf_ctx_value(ctx);
    return conditions && mk_conditions_parse(conditions, ctx, value, SUBJECTS, true) &&
           mk_conf_ctx_append(ctx, &e->at, &e->n, &conditions, sizeof(struct mk_conditions *)) &&
           mk_conf_ctx_append(ctx, &e->written, &e->n_written, &written, sizeof written);
}

static bool show_exception(const void *field, size_t i, struct mk_buf *out)
{
    const struct memory_exceptions *e = field;
    if (i < e->n_written)
        mk_buf_add(out, e->written[i]);
    return i < e->n_written;
}

static const struct mk_conf_key keys[] = {
    {.name = "Limit",
     .type = MK_CONF_SIZE,
     AT(limit),
     .min = MEMORY_LIMIT_MIN,
     .default_value = "auto",
     .zero_word = "auto",
     .help =
         MK_HELP("Memory of each worker process. Above 85 % of it the worker releases memory, above 95 % new "
                 "requests get 503, and above the limit new connections, too. `auto`: the workers share 80 "
                 "% of the memory of the control group or the machine.")},
    {.name = "Replace",
     .type = MK_CONF_TIME,
     AT(replace_ms),
     .default_value = "30s",
     .zero_word = "off",
     .help = MK_HELP("A worker that has rejected requests for this long is replaced by a new one.")},
    {.name = "Except",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     AT(except),
     .syntax = "paths, networks or CONDITION...",
     .help = MK_HELP("Requests that are served although memory is scarce, such as health checks."),
     .parse = parse_exception,
     .show = show_exception},
};

const struct mk_conf_table memory_table = {
    .section = "MEMORY",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = MK_HELP("Memory limit of the worker processes."),
    .size = sizeof(struct memory_settings),
    .scope = MK_CONF_SERVER,
};
