/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* What holds without a [CGI], and what its keys have as defaults. */
#define SILENCE    30
#define WAIT       10
#define PROCESSES  16
#define WAITING    64
#define HEAD_KB    32
#define ERRORS_KB  64
#define IN_TEXT(n) TEXT_OF(n)
#define TEXT_OF(n) #n
#define AT(member) MK_CONF_AT(struct cgi_settings, member)
#define A_DAY      86400000

static void append(struct cgi_list *list, struct cgi_item *item)
{
    if (list->last)
        list->last->next = item;
    else
        list->first = item;
    list->last = item;
}

/* The i-th, or NULL. */
static const void *at(const void *list, size_t i)
{
    const struct cgi_item *item = ((const struct cgi_list *)list)->first;
    while (item && i--)
        item = item->next;
    return item;
}

/* ---- Interpreters ---- */

/* What is wrong with the program, or NULL. */
static const char *complaint_about(const char *program)
{
    if (program[0] != '/')
        return "a program is named by its whole path, from / on";
    if (access(program, X_OK) == 0)
        return NULL;
    return errno == EACCES ? "may not be executed" : errno == ENOENT ? "is not there" : "cannot be reached";
}

static bool take_program(const struct mk_conf_spot *spot, mk_str word, struct cgi_interpreter *in, size_t at)
{
    char *copy = mk_conf_spot_alloc(spot, word.len + 1);
    if (!copy)
        return false;
    memcpy(copy, word.p, word.len); /* the rest of it is zero */
    in->words[at] = copy;
    const char *complaint = at == 0 ? complaint_about(copy) : NULL;
    if (complaint)
        mk_conf_spot_error(spot, word, "`%s`: %s", copy, complaint);
    return !complaint;
}

static bool parse_interpreter(const struct mk_conf_spot *spot, mk_str value, void *field)
{
    struct cgi_list *list = field;
    struct cgi_interpreter *in = mk_conf_spot_alloc(spot, sizeof *in);
    mk_str word;
    if (!in || !mk_conf_spot_word(spot, &value, &in->suffix))
        return false;
    if (!mk_str_starts(in->suffix, MK_STR(".")) || in->suffix.len < 2 ||
        mk_str_find(in->suffix, '/') != MK_STR_NONE) {
        mk_conf_spot_error(spot, in->suffix, "`%.*s` is not the end of a name, such as .php",
                           MK_STR_ARG(in->suffix));
        return false;
    }
    for (size_t n = 0;; n++) {
        if (!mk_conf_spot_word(spot, &value, &word))
            return false;
        if (!word.p && n == 0) {
            mk_conf_spot_error(spot, in->suffix, "no program is named for `%.*s`", MK_STR_ARG(in->suffix));
            return false;
        }
        if (!word.p)
            break;
        if (n == CGI_WORDS_MAX) {
            mk_conf_spot_error(spot, word, "more than %d words", CGI_WORDS_MAX);
            return false;
        }
        if (!take_program(spot, word, in, n))
            return false;
    }
    append(list, &in->item);
    return true;
}

static void write_word(struct mk_buf *out, const char *word)
{
    bool plain = *word && !strpbrk(word, " \t\"\\#$");
    mk_buf_add_char(out, ' ');
    if (!plain)
        mk_buf_add_char(out, '"');
    for (; *word; word++) {
        if (*word == '"' || *word == '\\')
            mk_buf_add_char(out, '\\');
        mk_buf_add_char(out, *word);
    }
    if (!plain)
        mk_buf_add_char(out, '"');
}

static bool show_interpreter(const void *field, size_t i, struct mk_buf *out)
{
    const struct cgi_interpreter *in = at(field, i);
    if (!in)
        return false;
    mk_buf_add(out, in->suffix);
    for (size_t n = 0; in->words[n]; n++)
        write_word(out, in->words[n]);
    return true;
}

/* ---- Variables ---- */

static bool is_name(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!mk_char_is_alpha(s.p[i]) && s.p[i] != '_' && (i == 0 || !mk_char_is_digit(s.p[i])))
            return false;
    return s.len > 0;
}

/* Cuts "NAME=value" out of one room. */
static void fill_variable(struct cgi_variable *v, char *room, mk_str name, mk_str value)
{
    memcpy(room, name.p, name.len);
    room[name.len] = '=';
    if (value.len)
        memcpy(room + name.len + 1, value.p, value.len);
    room[name.len + 1 + value.len] = '\0';
    v->line = room;
    v->name = mk_str_of(room, name.len);
    v->value = mk_str_of(room + name.len + 1, value.len);
}

static bool parse_set(const struct mk_conf_spot *spot, mk_str rest, void *field)
{
    struct cgi_list *list = field;
    mk_str name, value, more;
    if (!mk_conf_spot_word(spot, &rest, &name) || !mk_conf_spot_word(spot, &rest, &value) ||
        !mk_conf_spot_word(spot, &rest, &more))
        return false;
    if (!is_name(name)) {
        mk_conf_spot_error(spot, name, "`%.*s` is not the name of a variable: letters, digits and _",
                           MK_STR_ARG(name));
        return false;
    }
    if (!value.p || more.p)
        return false;
    struct cgi_variable *v = mk_conf_spot_alloc(spot, sizeof *v);
    char *room = mk_conf_spot_alloc(spot, name.len + value.len + 2);
    if (!v || !room)
        return false;
    fill_variable(v, room, name, value);
    append(list, &v->item);
    return true;
}

static bool show_set(const void *field, size_t i, struct mk_buf *out)
{
    const struct cgi_variable *v = at(field, i);
    if (!v)
        return false;
    mk_buf_add(out, v->name);
    write_word(out, v->value.p);
    return true;
}

/* Before Monkey 1.6 what is a route now stood here. */
static bool parse_match(const struct mk_conf_spot *spot, mk_str value, void *field)
{
    (void)field;
    mk_str regex = mk_str_word(&value);
    mk_conf_spot_error(spot, (mk_str){NULL, 0},
                       "which paths lead to scripts is said in [ROUTES] or [HANDLERS]");
    mk_conf_spot_hint(spot, "write it below the [HOST] as [HANDLERS]: `Match %.*s cgi%s%.*s`",
                      MK_STR_ARG(regex), value.len ? " " : "", MK_STR_ARG(mk_str_trim(value)));
    return false;
}

static bool show_nothing(const void *field, size_t i, struct mk_buf *out)
{
    (void)field, (void)i, (void)out;
    return false;
}

/* ---- The table ---- */

static const char *const chunked_words[] = {"refuse", "stream", NULL};

static const struct mk_conf_key keys[] = {
    {.name = "Interpreter",
     .type = MK_CONF_CUSTOM,
     AT(interpreters),
     .flags = MK_CONF_REPEATABLE,
     .form = ".SUFFIX /path/of/program [arguments...]",
     .parse = parse_interpreter,
     .show = show_interpreter,
     .help = "Scripts whose name ends like this are handed to the program, with their own name as its last "
             "argument. Others must be executable."},
    {.name = "SetEnv",
     .type = MK_CONF_CUSTOM,
     AT(set),
     .flags = MK_CONF_REPEATABLE,
     .form = "NAME VALUE",
     .parse = parse_set,
     .show = show_set,
     .help = "A variable for every script, also in place of one that the server would set."},
    {.name = "PassEnv",
     .type = MK_CONF_WORDS,
     AT(pass),
     .help = "Variables that scripts get as the server has them."},
    {.name = "CgiTimeout",
     .type = MK_CONF_TIME,
     AT(silence_ms),
     .min = 100,
     .max = A_DAY,
     .zero = "unlimited",
     .def = IN_TEXT(SILENCE),
     .help = "How long a script may do nothing that one can see: neither take content nor say anything (504 "
             "before its head, else the connection is cut). `HandlerTimeout` holds besides."},
    {.name = "MaxTime",
     .type = MK_CONF_TIME,
     AT(life_ms),
     .min = 100,
     .max = A_DAY,
     .zero = "unlimited",
     .def = "unlimited",
     .help = "How long a script may run in all, whatever it does (504)."},
    {.name = "MaxProcesses",
     .type = MK_CONF_NUM,
     AT(processes),
     .min = 1,
     .max = 10000,
     .def = IN_TEXT(PROCESSES),
     .help = "Scripts that one worker runs at a time."},
    {.name = "MaxWaiting",
     .type = MK_CONF_NUM,
     AT(waiting),
     .max = 100000,
     .def = IN_TEXT(WAITING),
     .help = "Requests of one worker that wait for a script to end before theirs begins (503 for others)."},
    {.name = "WaitTimeout",
     .type = MK_CONF_TIME,
     AT(wait_ms),
     .min = 100,
     .max = A_DAY,
     .def = IN_TEXT(WAIT),
     .help = "How long such a request waits (503)."},
    {.name = "MaxOutput",
     .type = MK_CONF_SIZE,
     AT(output),
     .zero = "unlimited",
     .def = "unlimited",
     .help = "Bytes of content that a script may make."},
    {.name = "MaxHead",
     .type = MK_CONF_SIZE,
     AT(head),
     .min = 64,
     .max = 56 * 1024,
     .def = IN_TEXT(HEAD_KB) "K",
     .help = "Bytes of the fields before it (502)."},
    {.name = "MaxErrors",
     .type = MK_CONF_SIZE,
     AT(errors),
     .max = 1 << 30,
     .zero = "off",
     .def = IN_TEXT(ERRORS_KB) "K",
     .help = "Bytes of a script's standard error that go to the error log; what is more is thrown away."},
    {.name = "MaxCpu",
     .type = MK_CONF_TIME,
     AT(cpu_ms),
     .max = A_DAY,
     .zero = "unlimited",
     .def = "unlimited",
     .help = "Processor time of each process, in whole seconds."},
    {.name = "MaxMemory",
     .type = MK_CONF_SIZE,
     AT(memory),
     .min = 1 << 20,
     .zero = "unlimited",
     .def = "unlimited",
     .help = "Address space of each process."},
    {.name = "MaxFileSize",
     .type = MK_CONF_SIZE,
     AT(file_size),
     .zero = "unlimited",
     .def = "unlimited",
     .help = "Bytes of a file that a script may write."},
    {.name = "ChunkedContent",
     .type = MK_CONF_ENUM,
     AT(chunked),
     .choices = chunked_words,
     .def = "refuse",
     .help =
         "Content whose length is not known when it begins, and that is longer than 64 KB: `refuse` asks for "
         "a length (411), `stream` starts the script without CONTENT_LENGTH."},
    {.name = "FollowClient",
     .type = MK_CONF_BOOL,
     AT(follow),
     .def = "on",
     .help =
         "A client that closes its side of the connection has gone, and its script is ended. `off`: it may "
         "still be listening, and is found to be gone with the next output."},
    {.name = "PassAuthorization",
     .type = MK_CONF_BOOL,
     AT(authorization),
     .def = "off",
     .help = "Scripts see the field Authorization, passwords included, as HTTP_AUTHORIZATION."},
    {.name = "QueryArguments",
     .type = MK_CONF_BOOL,
     AT(arguments),
     .def = "off",
     .help = "A query without `=` becomes arguments of a script that needs no interpreter (RFC 3875, section "
             "4.4)."},
    {.name = "Match",
     .type = MK_CONF_CUSTOM,
     AT(unused),
     .flags = MK_CONF_REPEATABLE | MK_CONF_DEPRECATED,
     .form = "nothing",
     .parse = parse_match,
     .show = show_nothing,
     .help = "Where Monkey before 1.6 had its patterns; they are routes now."},
};

const struct mk_conf_table cgi_table = {
    .section = "CGI",
    .keys = keys,
    .n = sizeof keys / sizeof *keys,
    .help = "Programs that answer requests (RFC 3875).",
    .size = sizeof(struct cgi_settings),
    .scope = MK_CONF_HOST,
};

/* ---- Settings of a host ---- */

static const struct cgi_settings defaults = {
    .silence_ms = SILENCE * 1000,
    .wait_ms = WAIT * 1000,
    .processes = PROCESSES,
    .waiting = WAITING,
    .head = HEAD_KB * 1024,
    .errors = ERRORS_KB * 1024,
    .follow = true,
};

static bool pass_variable(struct mk_config *config, struct cgi_settings *s, mk_str name)
{
    const char *value = is_name(name) ? getenv(name.p) : NULL;
    if (!is_name(name))
        mk_config_error(config, s, "PassEnv", "`%.*s` is not the name of a variable: letters, digits and _",
                        MK_STR_ARG(name));
    if (!value)
        return true;
    struct cgi_variable *v = mk_config_alloc(config, sizeof *v);
    char *room = mk_config_alloc(config, name.len + strlen(value) + 2);
    if (!v || !room)
        return false;
    fill_variable(v, room, name, mk_str_from_c(value));
    append(&s->passed, &v->item);
    return true;
}

struct cgi_settings *cgi_settings_of(struct mk_config *config, unsigned *pools)
{
    struct cgi_settings *s = mk_config_section(config, &cgi_table, NULL);
    if (!s && (s = mk_config_alloc(config, sizeof *s)))
        *s = defaults;
    if (!s || s->pool) /* seen with another host */
        return s;
    s->pool = ++*pools;
    for (size_t i = 0; i < s->pass.n; i++) {
        mk_str name = mk_config_copy(config, s->pass.v[i]);
        if (!name.p || !pass_variable(config, s, name))
            return NULL;
    }
    return s;
}

static bool has(const struct cgi_list *list, mk_str name)
{
    const struct cgi_variable *v;
    for (size_t i = 0; (v = at(list, i)); i++)
        if (mk_str_eq(v->name, name))
            return true;
    return false;
}

bool cgi_settings_has(const struct cgi_settings *s, mk_str name)
{
    return has(&s->set, name) || has(&s->passed, name);
}

/* ---- Words of a route ---- */

bool cgi_settings_bind(const struct mk_conf_spot *spot, mk_str words, void **data)
{
    struct cgi_route *r = mk_conf_spot_alloc(spot, sizeof *r);
    mk_str program, more;
    *data = r;
    if (!r || !mk_conf_spot_word(spot, &words, &program) || !mk_conf_spot_word(spot, &words, &r->type) ||
        !mk_conf_spot_word(spot, &words, &more))
        return false;
    if (r->type.p && (!mk_is_field_value(r->type) || mk_str_find(r->type, '/') == MK_STR_NONE)) {
        mk_conf_spot_error(spot, r->type, "`%.*s` is not a media type", MK_STR_ARG(r->type));
        return false;
    }
    if (!program.p || more.p)
        return !more.p;
    struct cgi_interpreter *in = mk_conf_spot_alloc(spot, sizeof *in);
    r->interpreter = in;
    return in && take_program(spot, program, in, 0);
}
