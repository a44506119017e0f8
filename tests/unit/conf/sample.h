/* SPDX-License-Identifier: Apache-2.0 */
/* A table with one key of each type, for tests of binding and printing. */
#ifndef MK_UNIT_CONF_SAMPLE_H
#define MK_UNIT_CONF_SAMPLE_H

#include "conf/bind.h"
#include "conf/value.h"

enum { SAMPLE_PORTS = 4, SAMPLE_PAIRS = 8 };
enum sample_mode { SAMPLE_DROP, SAMPLE_RESIST, SAMPLE_BUSY };

struct sample_ports {
    uint64_t v[SAMPLE_PORTS];
    size_t n;
};

struct sample {
    bool keep;
    uint16_t workers;
    uint64_t size;
    uint32_t timeout_ms;
    uint8_t level;
    mk_str root, title, format;
    struct mk_conf_words names, index;
    enum sample_mode mode;
    struct sample_ports ports;
    mk_str keys[SAMPLE_PAIRS], values[SAMPLE_PAIRS];
    size_t n_pairs;
};

static bool sample_parse_port(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct sample_ports *ports = field;
    uint64_t port;
    mk_str word = mk_str_word(&value);
    if (mk_conf_value_parse_num(word, &port))
        return false;
    if (port > 65535 || ports->n == SAMPLE_PORTS || value.len) {
        mk_conf_ctx_error(ctx, value.len ? mk_str_trim(value) : word, "port %.*s cannot be used",
                          MK_CONF_REPORT_ARG(word));
        mk_conf_report_hint(ctx->report, "use another one");
        return false;
    }
    ports->v[ports->n++] = port;
    return true;
}

static bool sample_show_port(const void *field, size_t i, struct mk_buf *out)
{
    const struct sample_ports *ports = field;
    if (i >= ports->n)
        return false;
    mk_buf_add_num(out, ports->v[i]);
    return true;
}

static const char *const sample_modes[] = {"Drop", "Resist", "TooBusy", NULL};

static const struct mk_conf_key sample_keys[] = {
    {.name = "KeepAlive",
     .type = MK_CONF_BOOL,
     MK_CONF_AT(struct sample, keep),
     .default_value = "on",
     .help = "Answer more than one request per connection."},
    {.name = "Workers",
     .type = MK_CONF_NUM,
     MK_CONF_AT(struct sample, workers),
     .min = 2,
     .max = 64,
     .zero_word = "auto",
     .default_value = "auto",
     .help = "Processes."},
    {.name = "MaxRequestSize",
     .type = MK_CONF_SIZE,
     MK_CONF_AT(struct sample, size),
     .unit = 1024,
     .min = 4096,
     .max = 1 << 30,
     .default_value = "32",
     .help = "Largest request."},
    {.name = "Timeout",
     .type = MK_CONF_TIME,
     MK_CONF_AT(struct sample, timeout_ms),
     .min = 1,
     .max = 3600000,
     .default_value = "15",
     .help = "Time for a request."},
    {.name = "Level", .type = MK_CONF_NUM, MK_CONF_AT(struct sample, level), .help = "A small | number."},
    {.name = "DocumentRoot",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct sample, root),
     .flags = MK_CONF_REQUIRED,
     .help = "The folder."},
    {.name = "Title",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct sample, title),
     .flags = MK_CONF_MAY_BE_EMPTY,
     .default_value = "Hello, \"world\"",
     .max = 30,
     .help = "The title."},
    {.name = "Format",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct sample, format),
     .min = 3,
     .help = "The format."},
    {.name = "ServerName",
     .type = MK_CONF_WORDS,
     MK_CONF_AT(struct sample, names),
     .max = 40,
     .help = "Names."},
    {.name = "IndexFile",
     .type = MK_CONF_WORDS,
     MK_CONF_AT(struct sample, index),
     .flags = MK_CONF_MAY_BE_EMPTY,
     .default_value = "index.html \"my index\"",
     .help = "Tried in order."},
    {.name = "OverCapacity",
     .type = MK_CONF_ENUM,
     MK_CONF_AT(struct sample, mode),
     .choices = sample_modes,
     .default_value = "resist",
     .help = "What then."},
    {.name = "Port",
     .type = MK_CONF_CUSTOM,
     MK_CONF_AT(struct sample, ports),
     .flags = MK_CONF_REPEATABLE,
     .syntax = "a port",
     .parse = sample_parse_port,
     .show = sample_show_port,
     .default_value = "80",
     .help = "Where."},
    {.name = "Host", .alias_of = "ServerName"},
    {.name = "MaxTime", .alias_of = "Timeout", .flags = MK_CONF_DEPRECATED},
    {.name = "FDT", .flags = MK_CONF_IGNORED, .help = "Files are shared always."},
};

static const struct mk_conf_table sample_table = {
    .section = "SERVER", .keys = sample_keys, .n = MK_LEN(sample_keys), .help = "The server."};

static void sample_on_pair(const struct mk_conf_ctx *ctx)
{
    struct sample *s = (struct sample *)ctx->out;
    const struct mk_conf_entry *e = ctx->entry;
    if (e->key.p[0] == '!' || s->n_pairs == SAMPLE_PAIRS) {
        mk_conf_ctx_error(ctx, e->key, "`%.*s` is no pattern", MK_CONF_REPORT_ARG(e->key));
        return;
    }
    s->keys[s->n_pairs] = e->key;
    s->values[s->n_pairs++] = e->value;
}

static bool sample_show_pair(const void *in, size_t i, struct mk_buf *key, struct mk_buf *value)
{
    const struct sample *s = (const struct sample *)in;
    if (i >= s->n_pairs)
        return false;
    mk_buf_add(key, s->keys[i]);
    mk_buf_add(value, s->values[i]);
    return true;
}

static const struct mk_conf_key route_keys[] = {
    {.name = "Default",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct sample, root),
     .default_value = "static",
     .help = "For what no pattern matches."},
};

static const struct mk_conf_table route_table = {.section = "ROUTES",
                                                 .keys = route_keys,
                                                 .n = MK_LEN(route_keys),
                                                 .repeatable = true,
                                                 .entry = sample_on_pair,
                                                 .show_entry = sample_show_pair,
                                                 .entry_syntax = "pattern handler",
                                                 .entry_help = "The first match wins."};

#endif
