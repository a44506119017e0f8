/* SPDX-License-Identifier: Apache-2.0 */
#include "environment.h"

enum { DERIVED_MAX = 64 * 1024, KEY_MIN = 32 /* Duda rejects shorter keys */ };

/* Variables that programs of all kinds use. A name that ends with `_` stands for all names with this
 * prefix. */
static const char *const passed[] = {
    "PATH",         "HOME",         "LANG",         "LANGUAGE",      "LC_",
    "TZ",           "TMPDIR",       "SSL_CERT_DIR", "SSL_CERT_FILE", /* OpenSSL */
    "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"};
/* Variables that a service manager sets for the front server, and variables that we set for the group. */
static const char *const taken[] = {"LISTEN_", "MONKEY_", "NOTIFY_SOCKET", "WATCHDOG_"};

static bool is_name_in_list(mk_str name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mk_str one = mk_str_from_c(list[i]);
        if (mk_str_ends(one, MK_STR("_")) ? mk_str_starts(name, one) : mk_str_eq(name, one))
            return true;
    }
    return false;
}

bool isolate_environment_may_inherit(mk_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!mk_char_is_alpha(name.p[i]) && name.p[i] != '_' && !(i && mk_char_is_digit(name.p[i])))
            return false;
    return name.len && !is_name_in_list(name, taken, MK_LEN(taken));
}

static bool is_configured_variable(const struct isolate_settings *s, mk_str name)
{
    for (size_t i = 0; i < s->env.n; i++)
        if (mk_str_eq(s->env.v[i], name))
            return true;
    return false;
}

/* ---- Keys ---- */

/* A key that is too short is replaced by an equally short text: Duda rejects it, but does not learn the
 * key. */
static void append_derived_key(struct mk_buf *out, mk_str key, mk_str purpose)
{
    char derived[32];
    if (key.len >= KEY_MIN) {
        mk_hmac_sha256(key, purpose, derived);
        mk_hex_encode(out, mk_str_of(derived, sizeof derived));
        explicit_bzero(derived, sizeof derived);
    }
    for (size_t i = 0; key.len < KEY_MIN && i < key.len; i++)
        mk_buf_add_char(out, 'x');
    mk_buf_add_char(out, ' ');
}

/* Builds "DUDA_KEYS=..." for the group. It does not reveal the keys of the server or of other groups. */
static char *derive_group_keys(const struct isolate_group *g, mk_str keys)
{
    char buf[128];
    struct mk_buf purpose = mk_buf_fixed(buf, sizeof buf), out = mk_buf_growing(DERIVED_MAX);
    mk_buf_addf(&purpose, "isolate %s: " ISOLATE_KEYS, g->name);
    mk_buf_add(&out, MK_STR(ISOLATE_KEYS "="));
    while (keys.p) {
        mk_str line = mk_str_cut(&keys, '\n'), word;
        while ((word = mk_str_word(&line)).len)
            append_derived_key(&out, word, mk_buf_str(&purpose));
    }
    mk_buf_add_char(&out, '\0');
    return out.failed ? NULL : out.p;
}

/* ---- The whole environment ---- */

static size_t count_variables(char *const *lines)
{
    size_t n = 0;
    while (lines && lines[n])
        n++;
    return n;
}

/* Returns the line that the group gets; NULL: none. */
static char *choose_group_variable(const struct isolate_group *g, char *line)
{
    mk_str value = mk_str_from_c(line), name = mk_str_cut(&value, '=');
    if (is_configured_variable(g->settings, name))
        return isolate_environment_may_inherit(name) ? line : NULL;
    if (mk_str_eq(name, MK_STR(ISOLATE_KEYS)))
        return derive_group_keys(g, value);
    return is_name_in_list(name, passed, MK_LEN(passed)) ? line : NULL;
}

char **isolate_environment_build(const struct isolate_group *group, char *const *all, char *const *ours)
{
    size_t n = 0, n_all = count_variables(all), n_ours = count_variables(ours);
    char **out = mk_mem_zalloc(n_all + n_ours + 1, sizeof *out);
    if (!out)
        return NULL;
    for (size_t i = 0; i < n_all; i++)
        if ((out[n] = choose_group_variable(group, all[i])))
            n++;
    for (size_t i = 0; i < n_ours; i++)
        out[n++] = ours[i];
    out[n] = NULL;
    return out;
}
