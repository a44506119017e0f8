/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/config_builder.h"

#include "base/mem.h"
#include "setup/embedding.h"

enum { NAME_MAX_LEN = 63, TEXT_MAX = 1 << 20 };

struct mk_config_builder_section {
    struct mk_config_builder_section *next;
    unsigned host; /* number of the host; 0: the section belongs to the server */
    size_t name_len;
    char name[NAME_MAX_LEN];
    struct mk_buf text;
};

void mk_config_builder_free(struct mk_config_builder *l)
{
    while (l->first) {
        struct mk_config_builder_section *s = l->first;
        l->first = s->next;
        mk_buf_free(&s->text);
        mk_mem_free(s);
    }
    *l = (struct mk_config_builder){0};
}

static bool is_one_of(mk_str name, const char *const *words)
{
    while (*words && !mk_str_eq_nocase(name, mk_str_from_c(*words)))
        words++;
    return *words;
}

/* Sections of the server, and sections of a host. All other sections belong to plugins: they apply to the
 * server before the first host, and to the last host afterwards. */
static const char *const of_server[] = {"SERVER", "PLUGINS", "MIMETYPES", NULL};
static const char *const of_host[] = {"HOST",     "ROUTES",   "ERROR_PAGES", "CACHE_CONTROL",
                                      "HANDLERS", "LOCATION", NULL};

static unsigned section_vhost(const struct mk_config_builder *l, mk_str section)
{
    return is_one_of(section, of_server) ? 0 : l->n_hosts;
}

static bool is_printable(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return false;
    return true;
}

static bool is_section_name(mk_str s)
{
    return s.len > 0 && s.len <= NAME_MAX_LEN && is_printable(s) && mk_str_find(s, ']') == MK_STR_NONE &&
           mk_str_trim(s).len == s.len;
}

/* Does the configuration parser always read this word as a key? */
static bool is_config_key(mk_str s)
{
    return s.len > 0 && is_printable(s) && mk_str_find(s, ' ') == MK_STR_NONE && s.p[0] != '#' &&
           s.p[0] != '[' && !mk_str_eq_nocase(s, MK_STR("@INCLUDE")) &&
           !mk_str_eq_nocase(s, MK_STR("@SET")) && !mk_str_starts(s, MK_STR("---"));
}

static struct mk_config_builder_section *find_section(const struct mk_config_builder *l, mk_str name)
{
    struct mk_config_builder_section *found = NULL;
    unsigned host = section_vhost(l, name);
    for (struct mk_config_builder_section *s = l->first; s; s = s->next)
        if (s->host == host && mk_str_eq_nocase(mk_str_of(s->name, s->name_len), name))
            found = s;
    return found;
}

static mk_err add_section(struct mk_config_builder *l, mk_str name)
{
    struct mk_config_builder_section *s = mk_mem_zalloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->host = section_vhost(l, name);
    s->name_len = name.len;
    memcpy(s->name, name.p, name.len);
    s->text = mk_buf_growing(TEXT_MAX);
    if (l->last)
        l->last->next = s;
    else
        l->first = s;
    l->last = s;
    return 0;
}

mk_err mk_config_builder_begin_section(struct mk_config_builder *l, mk_str section)
{
    bool is_host = mk_str_eq_nocase(section, MK_STR("HOST"));
    if (!is_section_name(section))
        return -EINVAL;
    if (!is_host && is_one_of(section, of_host) && l->n_hosts == 0) {
        mk_err e = mk_config_builder_begin_section(l, MK_STR("HOST"));
        if (e)
            return e;
    }
    l->n_hosts += is_host;
    mk_err e = add_section(l, section);
    if (e)
        l->n_hosts -= is_host;
    return e;
}

mk_err mk_config_builder_set(struct mk_config_builder *l, mk_str section, mk_str key, mk_str value)
{
    if (!is_section_name(section) || !is_config_key(key) || !is_printable(value))
        return -EINVAL;
    struct mk_config_builder_section *s = find_section(l, section);
    if (!s) {
        mk_err e = mk_config_builder_begin_section(l, section);
        if (e)
            return e;
        s = l->last;
    }
    if (!mk_buf_reserve(&s->text, key.len + value.len + 6)) {
        s->text.failed = false;
        return -ENOMEM;
    }
    mk_buf_addf(&s->text, "    %.*s %.*s\n", MK_STR_ARG(key), MK_STR_ARG(value));
    return 0;
}

static mk_err fill_section(struct mk_conf_section *section, mk_str text, struct mk_arena *arena)
{
    while (text.len) {
        mk_str line = mk_str_trim(mk_str_cut(&text, '\n'));
        struct mk_conf_entry entry = {.key = mk_str_word(&line), .at = section->at};
        entry.value = mk_arena_copy(arena, mk_str_trim(line));
        if (!entry.value.p || !mk_conf_tree_add_entry(section, arena, &entry))
            return -ENOMEM;
    }
    return 0;
}

mk_err mk_config_builder_fill_tree(struct mk_conf_tree *tree, struct mk_arena *arena, const void *builder)
{
    const struct mk_config_builder *l = builder;
    const struct mk_conf_source_pos at = {.file = MK_EMBEDDING_NAME};
    for (const struct mk_config_builder_section *s = l->first; s; s = s->next) {
        mk_str name = mk_str_of(s->name, s->name_len);
        struct mk_conf_section *section = mk_conf_tree_add_section(tree, arena, name, &at);
        if (!section || fill_section(section, mk_buf_str(&s->text), arena))
            return -ENOMEM;
    }
    return 0;
}

void mk_config_builder_print(const struct mk_config_builder *l, struct mk_buf *out)
{
    for (unsigned host = 0; host <= l->n_hosts; host++)
        for (const struct mk_config_builder_section *s = l->first; s; s = s->next) {
            if (s->host != host)
                continue;
            mk_buf_addf(out, "[%.*s]\n", (int)s->name_len, s->name);
            mk_buf_add(out, mk_buf_str(&s->text));
        }
}
