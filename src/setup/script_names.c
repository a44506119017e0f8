/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/script_names.h"

#include "http/path_pattern.h"

struct extension_list {
    struct mk_arena *arena;
    mk_str *at;
    size_t n;
};

static bool is_word_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c);
}

static void add_extension(struct extension_list *e, mk_str word)
{
    mk_str ending = mk_arena_printf(e->arena, ".%.*s", MK_STR_ARG(word));
    if (word.len && ending.p)
        (void)!mk_arena_append(e->arena, &e->at, &e->n, &ending, sizeof ending);
}

/* Returns the length of a class such as `[^a-z]`, whose first character may be `]`; 0: unterminated. */
static size_t regex_class_len(mk_str text)
{
    size_t first = 1 + mk_str_starts(text, MK_STR("[^")),
           end = mk_str_find(mk_str_skip(text, first + 1), ']');
    return end == MK_STR_NONE ? 0 : first + 1 + end + 1;
}

/* Reads one character of an extension (`?` for a class). Returns its length in the expression; 0: end of the
 * extension. */
static size_t read_extension_char(mk_str text, char *c)
{
    *c = text.len && is_word_char(text.p[0]) ? text.p[0] : '?';
    if (*c != '?' || mk_str_starts(text, MK_STR(".")))
        return 1;
    if (mk_str_starts(text, MK_STR("[")))
        return regex_class_len(text);
    bool is_class =
        text.len > 1 && text.p[0] == '\\' && mk_str_find(MK_STR("dwDWSN"), text.p[1]) != MK_STR_NONE;
    return is_class ? 2 : 0;
}

/* Does the text begin with a group that continues a name? A group that begins with a slash, an anchor, an
 * escape or a class does not. */
static bool is_script_name_group(mk_str text)
{
    if (!mk_str_starts(text, MK_STR("(")))
        return false;
    text = mk_str_skip(text, 1);
    if (mk_str_starts(text, MK_STR("?:")) || mk_str_starts(text, MK_STR("?=")))
        text = mk_str_skip(text, 2);
    return text.len && mk_str_find(MK_STR("/$\\[?"), text.p[0]) == MK_STR_NONE;
}

enum { WORD_MAX = 32 };

/* Adds `py`, `pyw?`, `p[yl]` or `[a-z]+`; a word followed by anything else is not an extension. Returns the
 * text after the word. */
static mk_str add_regex_word(struct extension_list *e, mk_str text)
{
    char word[WORD_MAX + 1];
    size_t n = 0, len;
    while (n < WORD_MAX && (len = read_extension_char(text, &word[n])) > 0) {
        text = mk_str_skip(text, len);
        n++;
        if (text.len && mk_str_find(MK_STR("*+{"), text.p[0]) != MK_STR_NONE) {
            word[n - 1] = '*';
            add_extension(e, mk_str_of(word, n));
            return text;
        }
        if (mk_str_starts(text, MK_STR("?"))) {
            text = mk_str_skip(text, 1);
            add_extension(e, mk_str_of(word, n - 1));
        }
    }
    if (n && is_script_name_group(text))
        word[n++] = '*';
    if (!text.len || mk_str_find(MK_STR("$/()|\\?"), text.p[0]) != MK_STR_NONE)
        add_extension(e, mk_str_of(word, n));
    return text;
}

/* Adds the extension `py`, or each alternative of `(?:py|pl)`, that follows a dot. */
static void add_regex_alternatives(struct extension_list *e, mk_str text)
{
    if (!mk_str_starts(text, MK_STR("("))) {
        (void)add_regex_word(e, text);
        return;
    }
    text = mk_str_skip(text, 1);
    if (mk_str_starts(text, MK_STR("?")))
        text = mk_str_skip(text, mk_str_find(text, ':') + 1);
    for (bool more = true; more;) {
        text = add_regex_word(e, text);
        while (text.len && text.p[0] != '|' && text.p[0] != ')')
            text = mk_str_skip(text, 1);
        more = text.len && text.p[0] == '|';
        text = mk_str_skip(text, more);
    }
}

/* Adds the words after each dot of an expression. A word that is not an extension only makes rules
 * stricter. */
static void add_regex_extensions(struct extension_list *e, mk_str text)
{
    for (; text.len; text = mk_str_skip(text, 1)) {
        if (mk_str_starts(text, MK_STR("\\.")))
            add_regex_alternatives(e, mk_str_skip(text, 2));
        else if (mk_str_starts(text, MK_STR("[.]")))
            add_regex_alternatives(e, mk_str_skip(text, 3));
        else if (text.p[0] == '\\')
            text = mk_str_skip(text, 1);
    }
}

/* Is it the route of a plugin? Built-in handlers run no scripts. */
static bool is_plugin_route(const struct mk_route *route)
{
    return route && route->plugin;
}

/* Stores the Fallback in *name if it is a script: the script then receives all paths without a file as well.
 * False: out of memory. */
static bool find_front_controller(struct mk_arena *arena, const struct mk_vhost *host, mk_str *name)
{
    mk_str path = mk_arena_printf(arena, "/%.*s", MK_STR_ARG(host->fallback));
    if (path.p && host->fallback.len && is_plugin_route(mk_vhost_route(host, path)))
        *name = host->fallback;
    return path.p;
}

bool mk_script_names_collect(struct mk_arena *arena, struct mk_vhost *host)
{
    struct extension_list all = {.arena = arena};
    for (const struct mk_route *r = host->routes; r < host->routes + host->n_routes; r++) {
        mk_str ending = r->regex ? MK_STR_NULL : mk_path_pattern_extension(r->pattern.text);
        if (!is_plugin_route(r))
            continue;
        if (r->regex)
            add_regex_extensions(&all, r->pattern.text);
        else if (ending.p)
            (void)!mk_arena_append(arena, &all.at, &all.n, &ending, sizeof ending);
    }
    host->scripts = (struct mk_path_scripts){.endings = all.at, .n = all.n};
    return !arena->failed && find_front_controller(arena, host, &host->scripts.name);
}
