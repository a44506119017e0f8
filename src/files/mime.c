/* SPDX-License-Identifier: Apache-2.0 */
#include "files/mime.h"

#include "http/header.h"

void mk_mime_init(struct mk_mime *m, struct mk_arena *arena, mk_str default_type)
{
    *m = (struct mk_mime){.default_type = default_type, .arena = arena};
    mk_map_init(&m->added, arena);
}

static mk_str lowercase(mk_str s, char buf[MK_MIME_EXTENSION_MAX])
{
    for (size_t i = 0; i < s.len; i++)
        buf[i] = mk_char_lower(s.p[i]);
    return mk_str_of(buf, s.len);
}

bool mk_mime_add(struct mk_mime *m, mk_str extension, mk_str type)
{
    char buf[MK_MIME_EXTENSION_MAX];
    if (extension.len > sizeof buf)
        return true; /* ignored: mk_mime_find() looks up no extension of that length */
    mk_str key = mk_arena_copy(m->arena, lowercase(extension, buf));
    mk_str *value = mk_arena_alloc(m->arena, sizeof *value);
    if (!key.p || !value)
        return false;
    *value = type;
    return mk_map_put(&m->added, key, value);
}

static size_t builtin_line_start(size_t at)
{
    while (at > 0 && mk_mime_builtin[at - 1] != '\n')
        at--;
    return at;
}

/* Binary search over the bytes of the built-in table, whose lines are sorted by extension. */
static mk_str find_builtin(mk_str extension)
{
    size_t low = 1, high = mk_mime_builtin_len;
    while (low < high) {
        size_t at = builtin_line_start(low + (high - low) / 2);
        mk_str line = mk_str_of(mk_mime_builtin + at, mk_mime_builtin_len - at);
        line = mk_str_cut(&line, '\n');
        mk_str type = line, found = mk_str_cut(&type, ' ');
        int order = mk_str_cmp(extension, found);
        if (order == 0)
            return type;
        if (order < 0)
            high = at;
        else
            low = at + line.len + 1;
    }
    return (mk_str){NULL, 0};
}

mk_str mk_mime_find(const struct mk_mime *m, mk_str name)
{
    char buf[MK_MIME_EXTENSION_MAX];
    size_t dot = mk_str_find_last(name, '.');
    mk_str extension = dot == MK_STR_NONE ? MK_STR("") : mk_str_skip(name, dot + 1);
    if (extension.len == 0 || extension.len > sizeof buf)
        return m->default_type;
    extension = lowercase(extension, buf);
    const mk_str *added = mk_map_get(&m->added, extension);
    if (added)
        return *added;
    mk_str builtin = find_builtin(extension);
    return builtin.p ? builtin : m->default_type;
}

static bool is_quoted(mk_str s)
{
    return s.len >= 2 && s.p[0] == '"' && mk_str_find(mk_str_skip(s, 1), '"') == s.len - 2;
}

bool mk_mime_is_type(mk_str s)
{
    mk_str rest = s, type = mk_str_cut(&rest, '/');
    bool has_slash = rest.p != NULL, starts_blank = rest.len && (rest.p[0] == ' ' || rest.p[0] == '\t');
    mk_str subtype = has_slash ? mk_str_trim(mk_str_cut(&rest, ';')) : MK_STR("");
    if (!mk_is_token(type) || starts_blank || !mk_is_token(subtype))
        return false;
    while (rest.p) {
        mk_str value = mk_str_trim(mk_str_cut(&rest, ';')), name = mk_str_cut(&value, '=');
        if (!mk_is_token(name) || !value.p || (!mk_is_token(value) && !is_quoted(value)))
            return false;
    }
    return true;
}

bool mk_mime_wants_charset(mk_str type)
{
    return mk_str_starts(type, MK_STR("text/")) && mk_str_find(type, ';') == MK_STR_NONE;
}
