/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define AT(member) MK_CONF_AT(struct cgi_settings, member)
#define A_DAY      86400000

static void list_append(struct cgi_list *list, struct cgi_item *item)
{
    if (list->last)
        list->last->next = item;
    else
        list->first = item;
    list->last = item;
}

/* Returns the i-th element, or NULL. */
static const void *list_at(const void *list, size_t i)
{
    const struct cgi_item *item = ((const struct cgi_list *)list)->first;
    while (item && i--)
        item = item->next;
    return item;
}

/* ---- Interpreters ---- */

/* Returns the error in the name of a program, or NULL. */
static const char *check_program(const char *program)
{
    if (program[0] != '/')
        return "expected the absolute path of a program";
    if (access(program, X_OK) == 0)
        return NULL;
    return errno == EACCES ? "is not executable" : errno == ENOENT ? "does not exist" : "cannot be reached";
}

static bool parse_program(const struct mk_conf_ctx *ctx, mk_str word, struct cgi_interpreter *in, size_t at)
{
    char *copy = mk_conf_ctx_alloc(ctx, word.len + 1);
    if (!copy)
        return false;
    memcpy(copy, word.p, word.len); /* NUL-terminated: the memory was zeroed */
    in->words[at] = copy;
    const char *complaint = at == 0 ? check_program(copy) : NULL;
    if (complaint)
        mk_conf_ctx_error(ctx, word, "`%s`: %s", copy, complaint);
    return !complaint;
}

static bool parse_interpreter(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct cgi_list *list = field;
    struct cgi_interpreter *in = mk_conf_ctx_alloc(ctx, sizeof *in);
    mk_str word;
    if (!in || !mk_conf_ctx_word(ctx, &value, &in->suffix))
        return false;
    if (!mk_str_starts(in->suffix, MK_STR(".")) || in->suffix.len < 2 ||
        mk_str_find(in->suffix, '/') != MK_STR_NONE) {
        mk_conf_ctx_error(ctx, in->suffix, "`%.*s` is not a suffix such as .php", MK_STR_ARG(in->suffix));
        return false;
    }
    for (size_t n = 0;; n++) {
        if (!mk_conf_ctx_word(ctx, &value, &word))
            return false;
        if (!word.p && n == 0) {
            mk_conf_ctx_error(ctx, in->suffix, "no program for `%.*s`", MK_STR_ARG(in->suffix));
            return false;
        }
        if (!word.p)
            break;
        if (n == CGI_WORDS_MAX) {
            mk_conf_ctx_error(ctx, word, "more than %d arguments", CGI_WORDS_MAX);
            return false;
        }
        if (!parse_program(ctx, word, in, n))
            return false;
    }
    list_append(list, &in->item);
    return true;
}

static void append_quoted_word(struct mk_buf *out, mk_str word)
{
    bool plain = word.len;
    for (size_t i = 0; i < word.len; i++)
        plain &= !strchr(" \t\"\\#$", word.p[i]);
    mk_buf_add_char(out, ' ');
    if (!plain)
        mk_buf_add_char(out, '"');
    for (size_t i = 0; i < word.len; i++) {
        if (word.p[i] == '"' || word.p[i] == '\\')
            mk_buf_add_char(out, '\\');
        mk_buf_add_char(out, word.p[i]);
    }
    if (!plain)
        mk_buf_add_char(out, '"');
}

static bool show_interpreter(const void *field, size_t i, struct mk_buf *out)
{
    const struct cgi_interpreter *in = list_at(field, i);
    if (!in)
        return false;
    mk_buf_add(out, in->suffix);
    for (size_t n = 0; in->words[n]; n++)
        append_quoted_word(out, mk_str_from_c(in->words[n]));
    return true;
}

/* ---- Variables ---- */

static bool is_variable_name(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!mk_char_is_alpha(s.p[i]) && s.p[i] != '_' && (i == 0 || !mk_char_is_digit(s.p[i])))
            return false;
    return s.len > 0;
}

static bool parse_set(const struct mk_conf_ctx *ctx, mk_str rest, void *field)
{
    struct cgi_list *list = field;
    mk_str name, value, more;
    if (!mk_conf_ctx_word(ctx, &rest, &name) || !mk_conf_ctx_word(ctx, &rest, &value) ||
        !mk_conf_ctx_word(ctx, &rest, &more))
        return false;
    if (!is_variable_name(name)) {
        mk_conf_ctx_error(ctx, name, "invalid variable name `%.*s`: expected letters, digits and _",
                          MK_STR_ARG(name));
        return false;
    }
    if (!value.p || more.p)
        return false;
    struct cgi_variable *v = mk_conf_ctx_alloc(ctx, sizeof *v);
    if (!v)
        return false;
    v->line = (struct mk_header){name, value};
    list_append(list, &v->item);
    return true;
}

static bool show_set(const void *field, size_t i, struct mk_buf *out)
{
    const struct cgi_variable *v = list_at(field, i);
    if (!v)
        return false;
    mk_buf_add(out, v->line.name);
    append_quoted_word(out, v->line.value);
    return true;
}

/* Rejects the routes that this section contained in Monkey before 1.6. */
static bool parse_match(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    (void)field;
    mk_str regex = mk_str_word(&value);
    mk_conf_ctx_error(ctx, (mk_str){NULL, 0}, "paths of scripts belong in [ROUTES] or [HANDLERS]");
    mk_conf_ctx_hint(ctx, "write it below the [HOST] as [HANDLERS]: `Match %.*s cgi%s%.*s`",
                     MK_STR_ARG(regex), value.len ? " " : "", MK_STR_ARG(mk_str_trim(value)));
    return false;
}

static bool show_nothing(const void *field, size_t i, struct mk_buf *out)
{
    (void)field, (void)i, (void)out;
    return false;
}

/* ---- The table ---- */

static const char *const body_words[] = {"spool", "refuse", "stream", NULL};

static const char *const path_words[] = {[CGI_PATHS_CHECKED] = "checked", [CGI_PATHS_RAW] = "raw", NULL};

static const struct mk_conf_key keys[] = {
    {.name = "Interpreter",
     .type = MK_CONF_CUSTOM,
     AT(interpreters),
     .flags = MK_CONF_REPEATABLE,
     .syntax = ".SUFFIX /path/of/program [arguments...]",
     .parse = parse_interpreter,
     .show = show_interpreter,
     .help = MK_HELP(
         "Runs scripts whose name ends with the suffix; the name of the script is the last argument. Other "
         "scripts must be executable.")},
    {.name = "SetEnv",
     .type = MK_CONF_CUSTOM,
     AT(set),
     .flags = MK_CONF_REPEATABLE,
     .syntax = "NAME VALUE",
     .parse = parse_set,
     .show = show_set,
     .help = MK_HELP("Sets a variable for every script, and overrides variables that the server sets.")},
    {.name = "PassEnv",
     .type = MK_CONF_WORDS,
     AT(pass),
     .help = MK_HELP("Passes variables of the server's environment to scripts.")},
    {.name = "ReadTimeout",
     .type = MK_CONF_TIME,
     AT(silence_ms),
     .min = 100,
     .max = A_DAY,
     .zero_word = "unlimited",
     .default_value = "30",
     .help = MK_HELP(
         "How long a script may neither read its input nor write output. Then the client gets 504, or an "
         "aborted response after the head. `HandlerTimeout` applies as well.")},
    {.name = "MaxRunTime",
     .type = MK_CONF_TIME,
     AT(life_ms),
     .min = 100,
     .max = A_DAY,
     .zero_word = "unlimited",
     .default_value = "300",
     .help = MK_HELP(
         "Total time that a script may run. Then the client gets 504, or an aborted response after the "
         "head.")},
    {.name = "MaxProcesses",
     .type = MK_CONF_NUM,
     AT(processes),
     .min = 1,
     .max = 10000,
     .default_value = "16",
     .help = MK_HELP("Concurrent scripts per worker.")},
    {.name = "MaxProcessesPerAddress",
     .type = MK_CONF_NUM,
     AT(per_address),
     .max = 10000,
     .zero_word = "auto",
     .default_value = "auto",
     .help =
         MK_HELP("Concurrent scripts per worker for one client address (for IPv6, its /64 network); further "
                 "requests wait. `auto`: three quarters of `MaxProcesses`.")},
    {.name = "MaxQueue",
     .type = MK_CONF_NUM,
     AT(waiting),
     .max = 100000,
     .default_value = "64",
     .help = MK_HELP(
         "Requests per worker that may wait for a process. The address with the fewest running scripts is "
         "next. When the queue is full, a request of the address with the most queued requests gets 503.")},
    {.name = "QueueTimeout",
     .type = MK_CONF_TIME,
     AT(wait_ms),
     .min = 100,
     .max = A_DAY,
     .default_value = "10",
     .help = MK_HELP("How long a request may wait for a process before it gets 503.")},
    {.name = "MaxOutput",
     .type = MK_CONF_SIZE,
     AT(output),
     .zero_word = "unlimited",
     .default_value = "unlimited",
     .help = MK_HELP("Maximum size of a response body in bytes.")},
    {.name = "MaxHeaderSize",
     .type = MK_CONF_SIZE,
     AT(head),
     .min = 64,
     .max = 56 * 1024,
     .default_value = "32K",
     .help =
         MK_HELP("Maximum size of a script's response headers in bytes; larger ones are answered with 502.")},
    {.name = "MaxStderr",
     .type = MK_CONF_SIZE,
     AT(errors),
     .max = 1 << 30,
     .zero_word = "off",
     .default_value = "64K",
     .help = MK_HELP("Bytes of a script's standard error that go to the error log; the rest is discarded.")},
    {.name = "MaxCPUTime",
     .type = MK_CONF_TIME,
     AT(cpu_ms),
     .max = A_DAY,
     .zero_word = "unlimited",
     .default_value = "unlimited",
     .help = MK_HELP("CPU time of each process, in whole seconds.")},
    {.name = "MaxMemory",
     .type = MK_CONF_SIZE,
     AT(memory),
     .min = 1 << 20,
     .zero_word = "unlimited",
     .default_value = "unlimited",
     .help = MK_HELP("Address space of each process.")},
    {.name = "MaxFileSize",
     .type = MK_CONF_SIZE,
     AT(file_size),
     .zero_word = "unlimited",
     .default_value = "unlimited",
     .help = MK_HELP("Maximum size of a file that a script may write.")},
    {.name = "RequestBody",
     .type = MK_CONF_ENUM,
     AT(body),
     .choices = body_words,
     .default_value = "spool",
     .help = MK_HELP(
         "`spool` receives the whole body, up to `MaxBodySize`, before it starts the script, which always "
         "gets "
         "CONTENT_LENGTH; bodies above 64 KB go to `SpoolFolder`. `refuse` does the same, but answers a body "
         "of unknown length above 64 KB with 411. `stream` starts the script at once, without "
         "CONTENT_LENGTH if a body above 64 KB has no known length; a slow client then occupies a process.")},
    {.name = "CancelOnDisconnect",
     .type = MK_CONF_BOOL,
     AT(follow),
     .default_value = "on",
     .help = MK_HELP(
         "Terminates the script when the client closes its side of the connection. `off`: the client may "
         "still be reading; the server detects a disconnect only at the next output.")},
    {.name = "PassAuthorization",
     .type = MK_CONF_BOOL,
     AT(authorization),
     .default_value = "off",
     .help =
         MK_HELP("Passes the Authorization header, including passwords, to scripts as HTTP_AUTHORIZATION.")},
    {.name = "QueryArguments",
     .type = MK_CONF_BOOL,
     AT(arguments),
     .default_value = "off",
     .help = MK_HELP(
         "Passes a query without `=` as arguments to scripts without an interpreter (RFC 3875, section "
         "4.4).")},
    {.name = "Paths",
     .type = MK_CONF_ENUM,
     AT(paths),
     .choices = path_words,
     .default_value = "checked",
     .help = MK_HELP(
         "`checked`: rejects a path that a script may interpret as a path of another route, because it "
         "contains `%2F`, `;` or the like (400). `raw`: passes such paths to scripts.")},
    {.name = "Underscores",
     .type = MK_CONF_BOOL,
     AT(underscores),
     .default_value = "off",
     .help = MK_HELP(
         "Passes headers with an underscore in their names to scripts: HTTP_X_USER may then be `X_User` "
         "instead of `X-User`.")},
    {.name = "PassForwarded",
     .type = MK_CONF_BOOL,
     AT(forwarded),
     .default_value = "off",
     .help = MK_HELP(
         "Passes `Forwarded`, `X-Forwarded-*`, `X-Real-IP` and `X-Original-URL` to scripts. Clients can "
         "forge these headers: use it only if a trusted proxy sets them, or prefer `TrustedProxy` of "
         "[SECURITY].")},
    {.name = "Match",
     .type = MK_CONF_CUSTOM,
     AT(unused),
     .flags = MK_CONF_REPEATABLE | MK_CONF_DEPRECATED,
     .syntax = "nothing",
     .parse = parse_match,
     .show = show_nothing,
     .help = MK_HELP("The patterns of older versions are now routes.")},
};

const struct mk_conf_table cgi_table = {
    .section = "CGI",
    .keys = keys,
    .n = sizeof keys / sizeof *keys,
    .help = MK_HELP("CGI scripts (RFC 3875)."),
    .size = sizeof(struct cgi_settings),
    .scope = MK_CONF_VHOST,
};

/* ---- Settings of a host ---- */

/* Replaces an earlier variable of the same name. */
static void set_script_variable(struct cgi_settings *s, mk_str name, mk_str value)
{
    size_t i = 0;
    while (i < s->n_variables && !mk_str_eq(s->variables[i].name, name))
        i++;
    s->variables[i] = (struct mk_header){name, value};
    s->n_variables += i == s->n_variables;
}

static bool pass_env_variable(struct mk_config *config, struct cgi_settings *s, mk_str name)
{
    const char *value = is_variable_name(name) ? getenv(name.p) : NULL;
    if (!is_variable_name(name))
        mk_config_error(config, s, "PassEnv", "invalid variable name `%.*s`: expected letters, digits and _",
                        MK_STR_ARG(name));
    if (!value)
        return true;
    mk_str copy = mk_config_copy(config, mk_str_from_c(value));
    if (copy.p)
        set_script_variable(s, name, copy);
    return copy.p;
}

/* Collects the variables of PassEnv and SetEnv. SetEnv overrides PassEnv. */
static bool collect_variables(struct mk_config *config, struct cgi_settings *s)
{
    const struct cgi_variable *v;
    size_t n = s->pass.n;
    while (list_at(&s->set, n - s->pass.n))
        n++;
    s->variables = mk_config_alloc(config, (n + 1) * sizeof *s->variables);
    if (!s->variables)
        return false;
    for (size_t i = 0; i < s->pass.n; i++) {
        mk_str name = mk_config_copy(config, s->pass.v[i]);
        if (!name.p || !pass_env_variable(config, s, name))
            return false;
    }
    for (size_t i = 0; (v = list_at(&s->set, i)); i++)
        set_script_variable(s, v->line.name, v->line.value);
    return true;
}

/* A worker that an attacker controls must not start a script or an interpreter with LD_PRELOAD, PERL5OPT or the like. */
static bool list_permitted_variables(struct mk_config *config, struct cgi_settings *s)
{
    static const char *const usual[] = {"AUTH_TYPE",           "CONTENT_*",       "DOCUMENT_ROOT",
                                        "GATEWAY_INTERFACE",   "HTTPS",           "HTTP_*",
                                        "PATH=" CGI_PATH,      "PATH_INFO",       "PATH_TRANSLATED",
                                        "QUERY_STRING",        "REDIRECT_STATUS", "REMOTE_*",
                                        "REQUEST_*",           "SCRIPT_*",        "SERVER_*",
                                        "SSL_CIPHER",          "SSL_CLIENT_*",    "SSL_PROTOCOL",
                                        "SSL_SESSION_RESUMED", "SSL_TLS_SNI"};
    size_t n = sizeof usual / sizeof *usual;
    s->permitted = mk_config_alloc(config, (n + s->n_variables + 1) * sizeof *s->permitted);
    if (!s->permitted)
        return false;
    memcpy(s->permitted, usual, sizeof usual);
    for (size_t i = 0; i < s->n_variables; i++) {
        struct mk_buf text = mk_buf_growing(SIZE_MAX);
        mk_buf_addf(&text, "%.*s=%.*s", MK_STR_ARG(s->variables[i].name), MK_STR_ARG(s->variables[i].value));
        s->permitted[n + i] = text.failed ? NULL : mk_config_copy(config, mk_buf_str(&text)).p;
        mk_buf_free(&text);
        if (!s->permitted[n + i])
            return false;
    }
    return true;
}

/* Returns the settings of the current host, with their variables. */
static struct cgi_settings *get_settings(struct mk_config *config)
{
    struct cgi_settings *s = mk_config_settings(config, &cgi_table);
    bool is_ready =
        s && (s->permitted || (collect_variables(config, s) && list_permitted_variables(config, s)));
    return is_ready ? s : NULL;
}

static void allow_interpreter(struct mk_config *config, const struct cgi_settings *s, const char *key,
                              const struct cgi_interpreter *in)
{
    mk_config_allow_program(config, key ? s : NULL, key,
                            &(struct mk_program){.path = in->words[0],
                                                 .arguments = in->words + 1,
                                                 .variables = s->permitted,
                                                 .takes_script = true});
}

struct cgi_settings *cgi_settings_load(struct mk_config *config, unsigned *pools)
{
    struct cgi_settings *s = get_settings(config);
    if (!s || s->pool) /* already prepared for another host */
        return s;
    s->pool = ++*pools;
    for (const struct cgi_item *i = s->interpreters.first; i; i = i->next)
        allow_interpreter(config, s, "Interpreter", (const struct cgi_interpreter *)i);
    return s;
}

/* ---- Route arguments ---- */

bool cgi_settings_bind(const struct mk_conf_ctx *ctx, mk_str words, void **data)
{
    struct cgi_route *r = mk_conf_ctx_alloc(ctx, sizeof *r);
    mk_str program, more;
    *data = r;
    const struct cgi_settings *s = get_settings(mk_conf_ctx_config(ctx));
    if (!s)
        return false;
    mk_config_allow_scripts(mk_conf_ctx_config(ctx), s->permitted);
    if (!r || !mk_conf_ctx_word(ctx, &words, &program) || !mk_conf_ctx_word(ctx, &words, &r->type) ||
        !mk_conf_ctx_word(ctx, &words, &more))
        return false;
    if (r->type.p && (!mk_is_header_value(r->type) || mk_str_find(r->type, '/') == MK_STR_NONE)) {
        mk_conf_ctx_error(ctx, r->type, "`%.*s` is not a media type", MK_STR_ARG(r->type));
        return false;
    }
    if (!program.p || more.p)
        return !more.p;
    struct cgi_interpreter *in = mk_conf_ctx_alloc(ctx, sizeof *in);
    r->interpreter = in;
    if (!in || !parse_program(ctx, program, in, 0))
        return false;
    allow_interpreter(mk_conf_ctx_config(ctx), s, NULL, in);
    return true;
}
