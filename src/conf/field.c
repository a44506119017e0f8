/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/field.h"

#include "base/assert.h"
#include "conf/suggest.h"
#include "conf/value.h"

enum { FORM_MAX = 512 };

bool mk_conf_field_has_valid_size(const struct mk_conf_key *k)
{
    switch (k->type) {
    case MK_CONF_BOOL:
        return k->size == sizeof(bool);
    case MK_CONF_TEXT:
        return k->size == sizeof(mk_str);
    case MK_CONF_WORDS:
        return k->size == sizeof(struct mk_conf_words);
    case MK_CONF_CUSTOM:
        return k->parse != NULL;
    case MK_CONF_ENUM:
    case MK_CONF_NUM:
    case MK_CONF_SIZE:
    case MK_CONF_TIME:
        return k->size == 1 || k->size == 2 || k->size == 4 || k->size == 8;
    default:
        return false;
    }
}

static void *field_address(const struct mk_conf_ctx *ctx)
{
    return (char *)ctx->out + ctx->key->offset;
}

union number {
    uint8_t n8;
    uint16_t n16;
    uint32_t n32;
    uint64_t n64;
};

static void store_number(const struct mk_conf_ctx *ctx, uint64_t n)
{
    union number u = {.n64 = n};
    if (ctx->key->size == 1)
        u.n8 = (uint8_t)n;
    else if (ctx->key->size == 2)
        u.n16 = (uint16_t)n;
    else if (ctx->key->size == 4)
        u.n32 = (uint32_t)n;
    memcpy(field_address(ctx), &u, ctx->key->size);
}

uint64_t mk_conf_field_load(const struct mk_conf_key *k, const void *in)
{
    union number u = {.n64 = 0};
    memcpy(&u, (const char *)in + k->offset, k->size);
    return k->size == 1 ? u.n8 : k->size == 2 ? u.n16 : k->size == 4 ? u.n32 : u.n64;
}

/* Reports "expected a time (ms, s, m, h, d) up to 1h, not `1O`" or, if `what` is "too large", "`2h` is too
 * large: expected ..." */
static void report_bad_value(const struct mk_conf_ctx *ctx, mk_str value, const char *what)
{
    char buf[FORM_MAX];
    struct mk_buf form = mk_buf_fixed(buf, sizeof buf);
    mk_conf_table_describe(ctx->key, &form);
    if (what)
        mk_conf_ctx_error(ctx, value, "`%.*s` is %s: expected %.*s", MK_CONF_REPORT_ARG(value), what,
                          MK_STR_ARG(mk_buf_str(&form)));
    else
        mk_conf_ctx_error(ctx, value, "expected %.*s, not `%.*s`", MK_STR_ARG(mk_buf_str(&form)),
                          MK_CONF_REPORT_ARG(value));
}

static void set_bool(const struct mk_conf_ctx *ctx, mk_str value)
{
    bool b;
    if (mk_conf_value_parse_bool(value, &b) == 0) {
        memcpy(field_address(ctx), &b, sizeof b);
        return;
    }
    static const char *const words[] = {"on", "off", "yes", "no", "true", "false"};
    struct mk_conf_suggest near = mk_conf_suggest_for(value);
    for (size_t i = 0; i < MK_LEN(words); i++)
        mk_conf_suggest_try(&near, mk_str_from_c(words[i]));
    report_bad_value(ctx, value, NULL);
    mk_conf_report_suggest(ctx->report, near.best);
}

static mk_err parse_amount(const struct mk_conf_key *k, mk_str value, uint64_t *n)
{
    if (k->type == MK_CONF_SIZE)
        return mk_conf_value_parse_size(value, k->unit, n);
    if (k->type == MK_CONF_TIME)
        return mk_conf_value_parse_time(value, k->unit, n);
    return mk_conf_value_parse_num(value, n);
}

static void set_amount(const struct mk_conf_ctx *ctx, mk_str value)
{
    const struct mk_conf_key *k = ctx->key;
    uint64_t n = 0;
    if (k->zero_word && mk_str_eq_nocase(value, mk_str_from_c(k->zero_word))) {
        store_number(ctx, 0);
        return;
    }
    mk_err err = parse_amount(k, value, &n);
    if (err == -EINVAL)
        report_bad_value(ctx, value, NULL);
    else if (err || n > mk_conf_table_max(k))
        report_bad_value(ctx, value, "too large");
    else if (n < k->min)
        report_bad_value(ctx, value, "too small");
    else
        store_number(ctx, n);
}

static void set_choice(const struct mk_conf_ctx *ctx, mk_str value)
{
    struct mk_conf_suggest near = mk_conf_suggest_for(value);
    for (size_t i = 0; ctx->key->choices[i]; i++) {
        mk_str choice = mk_str_from_c(ctx->key->choices[i]);
        if (mk_str_eq_nocase(value, choice)) {
            store_number(ctx, i);
            return;
        }
        mk_conf_suggest_try(&near, choice);
    }
    report_bad_value(ctx, value, NULL);
    mk_conf_report_suggest(ctx->report, near.best);
}

static bool may_be_empty(const struct mk_conf_key *k)
{
    return k->flags & MK_CONF_MAY_BE_EMPTY;
}

static void report_bad_quotes(const struct mk_conf_ctx *ctx, mk_str value)
{
    mk_conf_ctx_error(ctx, value, "the quotes of `%.*s` do not match", MK_CONF_REPORT_ARG(value));
    mk_conf_report_hint(ctx->report,
                        "quoted text begins and ends with \"; within it, write \\\" for a quote");
}

static void set_text(const struct mk_conf_ctx *ctx, mk_str value)
{
    mk_str text;
    mk_err err = mk_conf_words_unquote(ctx->arena, value, &text);
    if (err == -ENOMEM)
        return;
    if (err)
        report_bad_quotes(ctx, value);
    else if (text.len == 0 && !may_be_empty(ctx->key))
        report_bad_value(ctx, value, "empty");
    else if (text.len && text.len < ctx->key->min)
        report_bad_value(ctx, value, "too short");
    else if (text.len > mk_conf_table_max(ctx->key))
        report_bad_value(ctx, value, "too long");
    else if ((text = mk_arena_copy(ctx->arena, text)).p) /* adds the terminating NUL */
        memcpy(field_address(ctx), &text, sizeof text);
}

static void set_words(const struct mk_conf_ctx *ctx, mk_str value)
{
    struct mk_conf_words *words = field_address(ctx);
    mk_str bad;
    mk_err err = mk_conf_words_append(ctx->arena, value, words, &bad);
    if (err == -ENOMEM)
        return;
    if (err)
        report_bad_quotes(ctx, bad);
    else if (words->n == 0 && !may_be_empty(ctx->key))
        report_bad_value(ctx, value, "empty");
    else if (words->n > mk_conf_table_max(ctx->key))
        report_bad_value(ctx, value, "too long");
}

static void set_custom(const struct mk_conf_ctx *ctx, mk_str value)
{
    size_t n_errors = ctx->report->n_errors;
    bool ok = ctx->key->parse(ctx, value, field_address(ctx));
    if (!ok && ctx->report->n_errors == n_errors && !mk_conf_report_out_of_memory(ctx->report))
        report_bad_value(ctx, value, NULL);
}

void mk_conf_field_set(const struct mk_conf_ctx *ctx, mk_str value)
{
    MK_ASSERT(mk_conf_field_has_valid_size(ctx->key));
    switch (ctx->key->type) {
    case MK_CONF_BOOL:
        set_bool(ctx, value);
        return;
    case MK_CONF_NUM:
    case MK_CONF_SIZE:
    case MK_CONF_TIME:
        set_amount(ctx, value);
        return;
    case MK_CONF_TEXT:
        set_text(ctx, value);
        return;
    case MK_CONF_WORDS:
        set_words(ctx, value);
        return;
    case MK_CONF_ENUM:
        set_choice(ctx, value);
        return;
    case MK_CONF_CUSTOM:
    default:
        set_custom(ctx, value);
    }
}

void mk_conf_field_clear(const struct mk_conf_key *k, void *out)
{
    if (k->type == MK_CONF_WORDS || k->type == MK_CONF_CUSTOM)
        memset((char *)out + k->offset, 0, k->size);
}
