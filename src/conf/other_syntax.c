/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/other_syntax.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

mk_str mk_conf_other_syntax_tail(mk_str text)
{
    bool quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        if (c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && i > 0 && (c == '#' || c == ';') && is_blank(text.p[i - 1]))
            return mk_str_skip(text, i);
    }
    bool ends = !quoted && text.len > 1 && text.p[text.len - 1] == ';';
    return ends ? mk_str_skip(text, text.len - 1) : (mk_str){NULL, 0};
}

const char *mk_conf_other_syntax_hint(mk_str tail)
{
    if (!tail.p)
        return NULL;
    if (tail.p[0] == '#')
        return "write the comment on a line of its own";
    return tail.len == 1 ? "a value must not end with `;`"
                         : "write the comment on a line of its own, beginning with `#`";
}

enum server { NGINX, APACHE, CADDY, HAPROXY };

static const struct mk_conf_other_syntax servers[] = {
    [NGINX] = {.server = "nginx",
               .hint =
                   "`server` is [HOST], `server_name` ServerName, `root` DocumentRoot, `location` [ROUTES], "
                   "`listen` Listen in [SERVER]; keys are indented, without `;`"},
    [APACHE] = {.server = "Apache",
                .hint =
                    "`<VirtualHost>` is [HOST], with ServerName and DocumentRoot indented below it; Listen "
                    "belongs to [SERVER], `<Location>` is [ROUTES]"},
    [CADDY] = {.server = "Caddy",
               .hint =
                   "a site is [HOST], its address ServerName, `root` DocumentRoot, `redir` [ROUTES]; Listen "
                   "belongs to [SERVER]; keys are indented, without braces"},
    [HAPROXY] = {.server = "HAProxy",
                 .hint = "`frontend` is [HOST], `bind` Listen in [SERVER], `backend` [UPSTREAM] with Server, "
                         "`default_backend` `/* proxy http://NAME` in [ROUTES]"},
};

static bool is_one_of(mk_str word, const char *const *words)
{
    while (*words && !mk_str_eq(word, mk_str_from_c(*words)))
        words++;
    return *words;
}

/* Guesses from `line`, which is not empty, for which server its file was written; NULL: unknown. */
static const struct mk_conf_other_syntax *guess_server(mk_str line, bool is_indented)
{
    static const char *const blocks[] = {"server", "http",  "events", "location", "upstream",
                                         "stream", "types", "map",    NULL};
    static const char *const caddy[] = {"file_server", "reverse_proxy", "php_fastcgi",
                                        "respond",     "encode",        NULL};
    static const char *const apache[] = {"LoadModule", "ServerRoot", NULL};
    static const char *const haproxy[] = {"global", "defaults", "frontend", "backend", "listen", NULL};
    char last = line.p[line.len - 1];
    mk_str rest = line, word = mk_str_word(&rest);
    if (line.p[0] == '<' && last == '>')
        return &servers[APACHE];
    if (last == '{' && is_one_of(word, blocks))
        return &servers[NGINX];
    if (is_indented)
        return NULL;
    if (is_one_of(word, apache))
        return &servers[APACHE];
    if (is_one_of(word, haproxy) && last != ';' && last != '{')
        return &servers[HAPROXY];
    return last == ';' ? &servers[NGINX] : last == '{' || is_one_of(word, caddy) ? &servers[CADDY] : NULL;
}

struct mk_conf_other_syntax mk_conf_other_syntax_detect(mk_str text)
{
    for (unsigned line = 1; text.p; line++) {
        mk_str source = mk_str_cut(&text, '\n'), trimmed = mk_str_trim(source);
        if (source.len && source.p[source.len - 1] == '\r') {
            source.len--;
            trimmed = mk_str_trim(source);
        }
        if (trimmed.len == 0 || mk_str_find(MK_STR("#[@"), trimmed.p[0]) != MK_STR_NONE)
            continue;
        const struct mk_conf_other_syntax *found = guess_server(trimmed, is_blank(source.p[0]));
        if (found)
            return (struct mk_conf_other_syntax){found->server, found->hint, line, source};
    }
    return (struct mk_conf_other_syntax){0};
}
