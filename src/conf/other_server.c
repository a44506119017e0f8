/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/other_server.h"

enum server { NGINX, APACHE, CADDY, HAPROXY };

static const struct mk_conf_other_server servers[] = {
    [NGINX] = {.name = "nginx",
               .hint =
                   "`server` is [HOST], `server_name` ServerName, `root` DocumentRoot, `location` [ROUTES], "
                   "`listen` Listen in [SERVER]; keys are indented, without `;`"},
    [APACHE] = {.name = "Apache",
                .hint =
                    "`<VirtualHost>` is [HOST], with ServerName and DocumentRoot indented below it; Listen "
                    "belongs to [SERVER], `<Location>` is [ROUTES]"},
    [CADDY] = {.name = "Caddy",
               .hint =
                   "a site is [HOST], its address ServerName, `root` DocumentRoot, `redir` [ROUTES]; Listen "
                   "belongs to [SERVER]; keys are indented, without braces"},
    [HAPROXY] = {.name = "HAProxy",
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
static const struct mk_conf_other_server *guess_server(mk_str line, bool is_indented)
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

struct mk_conf_other_server mk_conf_other_server_detect(mk_str text)
{
    for (unsigned line = 1; text.p; line++) {
        mk_str source = mk_str_cut(&text, '\n'), trimmed = mk_str_trim(source);
        if (source.len && source.p[source.len - 1] == '\r') {
            source.len--;
            trimmed = mk_str_trim(source);
        }
        if (trimmed.len == 0 || mk_str_find(MK_STR("#[@"), trimmed.p[0]) != MK_STR_NONE)
            continue;
        const struct mk_conf_other_server *found =
            guess_server(trimmed, source.p[0] == ' ' || source.p[0] == '\t');
        if (found)
            return (struct mk_conf_other_server){found->name, found->hint, line, source};
    }
    return (struct mk_conf_other_server){0};
}
