/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/keys_tls.h"

#include "base/num.h"
#include "conf/value.h"

enum { HSTS_MAX_S = 10 * 366 * 86400 };

const char *const mk_keys_tls_versions[] = {"1.2", "1.3", NULL};
const char *const mk_keys_tls_clients[] = {"off", "optional", "required", NULL};

/* ---- Files ---- */

/* Parses the next word as a path; *path is absent if there is no word. False: the error was reported. */
static bool parse_path_word(const struct mk_conf_ctx *ctx, mk_str *rest, mk_str *path)
{
    mk_str word;
    *path = MK_STR_NULL;
    if (!mk_conf_ctx_word(ctx, rest, &word))
        return false;
    if (!word.p)
        return true;
    if (word.len == 0) {
        mk_conf_ctx_error(ctx, *rest, "a file name is empty: expected %s", ctx->key->syntax);
        return false;
    }
    *path = mk_conf_ctx_path(ctx, word);
    return path->p != NULL;
}

static bool expect_line_end(const struct mk_conf_ctx *ctx, mk_str rest)
{
    rest = mk_str_trim(rest);
    if (rest.len)
        mk_conf_ctx_error(ctx, rest, "expected nothing after %s", ctx->key->syntax);
    return rest.len == 0;
}

bool mk_keys_tls_parse_certificate(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct mk_certificates *list = field;
    struct mk_certificate one = {.entry = ctx->entry};
    mk_str rest = value;
    if (!parse_path_word(ctx, &rest, &one.file) || !parse_path_word(ctx, &rest, &one.key) ||
        !parse_path_word(ctx, &rest, &one.ocsp) || !expect_line_end(ctx, rest))
        return false;
    return mk_arena_append(ctx->arena, &list->at, &list->n, &one, sizeof one);
}

bool mk_keys_tls_show_certificate(const void *field, size_t i, struct mk_buf *out)
{
    const struct mk_certificates *list = field;
    if (i >= list->n)
        return false;
    const mk_str words[] = {list->at[i].file, list->at[i].key, list->at[i].ocsp};
    for (size_t j = 0; j < MK_LEN(words) && words[j].p; j++) {
        if (j)
            mk_buf_add_char(out, ' ');
        mk_conf_words_quote_word(out, words[j]);
    }
    return true;
}

bool mk_keys_tls_parse_authority(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    mk_str rest = value;
    return parse_path_word(ctx, &rest, field) && expect_line_end(ctx, rest);
}

bool mk_keys_tls_show_authority(const void *field, size_t i, struct mk_buf *out)
{
    const mk_str *path = field;
    if (i || !path->p)
        return false;
    mk_conf_words_quote_word(out, *path);
    return true;
}

/* ---- HSTS ---- */

static bool parse_hsts_age(const struct mk_conf_ctx *ctx, mk_str word, uint64_t *age_ms)
{
    mk_err e = mk_conf_value_parse_time(word, 0, age_ms);
    if (e || *age_ms / 1000 > HSTS_MAX_S) {
        mk_conf_ctx_error(ctx, word, "`%.*s` is not a time of up to 10 years: expected %s",
                          MK_CONF_REPORT_ARG(word), ctx->key->syntax);
        return false;
    }
    return true;
}

bool mk_keys_tls_parse_hsts(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct mk_hsts *h = field;
    mk_str rest = value, word = mk_str_word(&rest);
    *h = (struct mk_hsts){0};
    if (mk_str_eq_nocase(word, MK_STR("off")))
        return expect_line_end(ctx, rest);
    if (!parse_hsts_age(ctx, word, &h->age_ms))
        return false;
    h->on = true;
    while ((word = mk_str_word(&rest)).len) {
        if (mk_str_eq_nocase(word, MK_STR("includeSubDomains"))) {
            h->subdomains = true;
        } else if (mk_str_eq_nocase(word, MK_STR("preload"))) {
            h->preload = true;
        } else {
            mk_conf_ctx_error(ctx, word, "`%.*s` is unknown: expected %s", MK_CONF_REPORT_ARG(word),
                              ctx->key->syntax);
            return false;
        }
    }
    return true;
}

bool mk_keys_tls_show_hsts(const void *field, size_t i, struct mk_buf *out)
{
    const struct mk_hsts *h = field;
    if (i)
        return false;
    if (!h->on) {
        mk_buf_add(out, MK_STR("off"));
        return true;
    }
    mk_conf_value_write_time(out, h->age_ms);
    mk_buf_add(out, h->subdomains ? MK_STR(" includeSubDomains") : MK_STR(""));
    mk_buf_add(out, h->preload ? MK_STR(" preload") : MK_STR(""));
    return true;
}

/* ---- RedirectToHTTPS ---- */

bool mk_keys_tls_parse_redirect(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    uint32_t *port = field;
    uint64_t n;
    bool on;
    (void)ctx;
    if (mk_conf_value_parse_bool(value, &on) == 0)
        *port = on ? MK_HTTPS_ON : 0;
    else if (mk_conf_value_parse_num(value, &n) == 0 && n >= 1 && n <= 65535)
        *port = (uint32_t)n;
    else
        return false;
    return true;
}

bool mk_keys_tls_show_redirect(const void *field, size_t i, struct mk_buf *out)
{
    uint32_t port = *(const uint32_t *)field;
    if (i)
        return false;
    if (port == 0 || port == MK_HTTPS_ON)
        mk_buf_add(out, port ? MK_STR("on") : MK_STR("off"));
    else
        mk_buf_add_num(out, port);
    return true;
}
