/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/table.h"

#include "base/assert.h"
#include "conf/value.h"

const struct mk_conf_key *mk_conf_table_find(const struct mk_conf_table *t, mk_str name, bool follow)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct mk_conf_key *k = &t->keys[i];
        if (!mk_str_eq_nocase(mk_str_from_c(k->name), name))
            continue;
        if (!follow || !k->alias_of)
            return k;
        const struct mk_conf_key *target = mk_conf_table_find(t, mk_str_from_c(k->alias_of), false);
        MK_ASSERT(target && !target->alias_of);
        return target;
    }
    return NULL;
}

const struct mk_conf_entry *mk_conf_table_entry(const struct mk_conf_table *t,
                                                const struct mk_conf_section *s, mk_str key)
{
    const struct mk_conf_key *expected = mk_conf_table_find(t, key, true);
    for (const struct mk_conf_entry *e = s ? s->first : NULL; e; e = e->next)
        if (expected ? mk_conf_table_find(t, e->key, true) == expected : mk_str_eq_nocase(e->key, key))
            return e;
    return NULL;
}

const struct mk_conf_entry *mk_conf_table_find_entry(const struct mk_conf_section *s, mk_str key)
{
    return s && s->table ? mk_conf_table_entry(s->table, s, key) : NULL;
}

uint64_t mk_conf_table_max(const struct mk_conf_key *k)
{
    uint64_t fits = k->type <= MK_CONF_TIME && k->size < 8 ? (1ULL << (8 * k->size)) - 1 : UINT64_MAX;
    return k->max && k->max < fits ? k->max : fits;
}

static void append_bound(const struct mk_conf_key *k, uint64_t n, struct mk_buf *out)
{
    if (k->type == MK_CONF_SIZE)
        mk_conf_value_write_size(out, n, k->unit);
    else if (k->type == MK_CONF_TIME)
        mk_conf_value_write_time(out, n);
    else
        mk_buf_add_num(out, n);
}

/* Writes " from 1 to 64"; omits a bound that merely comes from the width of the field, unless the bound is
 * small. */
static void append_range(const struct mk_conf_key *k, struct mk_buf *out)
{
    uint64_t max = mk_conf_table_max(k);
    bool bounded = k->max || (k->type == MK_CONF_NUM && k->size < 4);
    if (k->min && bounded) {
        mk_buf_add(out, MK_STR(" from "));
        append_bound(k, k->min, out);
        mk_buf_add(out, MK_STR(" to "));
        append_bound(k, max, out);
    } else if (bounded) {
        mk_buf_add(out, MK_STR(" up to "));
        append_bound(k, max, out);
    } else if (k->min) {
        mk_buf_add(out, MK_STR(" of at least "));
        append_bound(k, k->min, out);
    }
}

static void append_choices(const struct mk_conf_key *k, struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("one of "));
    for (const char *const *c = k->choices; *c; c++)
        mk_buf_addf(out, "%s%s", c == k->choices ? "" : ", ", *c);
}

static void describe_text(const struct mk_conf_key *k, struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("text"));
    if (k->min || k->max) {
        append_range(k, out);
        mk_buf_add(out, MK_STR(" bytes"));
    }
}

static void describe_words(const struct mk_conf_key *k, struct mk_buf *out)
{
    if (k->max)
        mk_buf_addf(out, "up to %llu ", (unsigned long long)k->max);
    mk_buf_add(out, MK_STR("words"));
}

void mk_conf_table_describe(const struct mk_conf_key *k, struct mk_buf *out)
{
    switch (k->type) {
    case MK_CONF_BOOL:
        mk_buf_add(out, MK_STR("on or off"));
        return;
    case MK_CONF_TEXT:
        describe_text(k, out);
        return;
    case MK_CONF_WORDS:
        describe_words(k, out);
        return;
    case MK_CONF_ENUM:
        append_choices(k, out);
        return;
    case MK_CONF_NUM:
        mk_buf_add(out, MK_STR("a number"));
        break;
    case MK_CONF_SIZE:
        mk_buf_add(out, MK_STR("a size (B, K, M, G)"));
        break;
    case MK_CONF_TIME:
        mk_buf_add(out, MK_STR("a time (ms, s, m, h, d)"));
        break;
    case MK_CONF_CUSTOM:
    default:
        mk_buf_add(out, mk_str_from_c(k->syntax ? k->syntax : "a value"));
        return;
    }
    append_range(k, out);
    if (k->zero_word)
        mk_buf_addf(out, ", or %s", k->zero_word);
}
