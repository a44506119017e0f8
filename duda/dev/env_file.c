/* SPDX-License-Identifier: Apache-2.0 */
#include "env_file.h"

#include "source.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 60 * 1024, NAME_MAX_LEN = 256 };

static bool is_name(mk_str s)
{
    bool ok = s.len > 0 && s.len <= NAME_MAX_LEN && !mk_char_is_digit(s.p[0]);
    for (size_t i = 0; ok && i < s.len; i++)
        ok = mk_char_is_alpha(s.p[i]) || mk_char_is_digit(s.p[i]) || s.p[i] == '_';
    return ok;
}

static bool is_rest_empty(mk_str rest)
{
    rest = mk_str_trim(rest);
    return rest.len == 0 || rest.p[0] == '#';
}

static char unescape(char c)
{
    return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
}

/* Appends a value in quotes. In single quotes, a backslash has no special meaning. Returns NULL or an error
 * message. */
static const char *append_quoted_value(struct mk_buf *out, mk_str value)
{
    const char quote = value.p[0];
    size_t i = 1;
    while (i < value.len && value.p[i] != quote) {
        bool is_escape = quote == '"' && value.p[i] == '\\' && i + 1 < value.len;
        i += is_escape;
        mk_buf_add_char(out, is_escape ? unescape(value.p[i]) : value.p[i]);
        i++;
    }
    if (i >= value.len)
        return "the closing quote is missing";
    return is_rest_empty(mk_str_skip(value, i + 1)) ? NULL : "unexpected text after the closing quote";
}

/* Without quotes, a `#` after a blank begins a comment. */
static void append_plain_value(struct mk_buf *out, mk_str value)
{
    size_t n = value.len && value.p[0] == '#' ? 0 : value.len;
    for (size_t i = 1; i < n; i++)
        if (value.p[i] == '#' && (value.p[i - 1] == ' ' || value.p[i - 1] == '\t'))
            n = i;
    mk_buf_add(out, mk_str_trim(mk_str_first(value, n)));
}

/* Sets the variable unless the environment already contains it. Returns NULL or an error message. */
static const char *parse_line(struct dev_env *env, mk_str line)
{
    mk_str value = line, name;
    char text[NAME_MAX_LEN + 1];
    if (mk_str_starts(line, MK_STR("export ")))
        value = mk_str_skip(line, 7);
    name = mk_str_trim(mk_str_cut(&value, '='));
    if (!is_name(name) || !value.p)
        return "expected NAME=VALUE";
    if (memchr(value.p, '\0', value.len))
        return "the value contains a NUL byte";
    memcpy(text, name.p, name.len);
    text[name.len] = '\0';
    if (getenv(text))
        return NULL;
    struct mk_buf word = mk_buf_growing(FILE_MAX);
    const char *problem = NULL;
    value = mk_str_trim(value);
    mk_buf_addf(&word, "%s=", text);
    if (value.len && (value.p[0] == '"' || value.p[0] == '\''))
        problem = append_quoted_value(&word, value);
    else
        append_plain_value(&word, value);
    dev_argv_add(&env->own, mk_buf_str(&word));
    mk_buf_free(&word);
    return problem;
}

/* Merges the environment of this process and the variables of the file. */
static bool fill_vars(struct dev_env *env)
{
    char *own[DEV_ARGV_MAX + 1];
    size_t n = 0;
    if (!dev_argv_to_array(&env->own, own))
        return false;
    for (; environ[n] && n < DEV_ENV_VARS_MAX; n++)
        env->vars[n] = environ[n];
    bool fits = n + env->own.n <= DEV_ENV_VARS_MAX;
    for (size_t i = env->own.n; fits && i-- > 0;) /* getenv() finds the first one, so the last line wins */
        env->vars[n++] = own[i];
    env->vars[n] = NULL;
    return fits;
}

bool dev_env_read(struct dev_env *env, const char *path, struct mk_buf *errors)
{
    struct mk_buf text = mk_buf_growing(FILE_MAX);
    unsigned number = 0;
    bool ok = true;
    dev_argv_init(&env->own);
    if (access(path, F_OK) == 0 && !dev_source_read_file(path, &text)) {
        mk_buf_addf(errors, "%s:1: error: the file cannot be read, or is longer than %d KB\n", path,
                    FILE_MAX / 1024);
        ok = false;
    }
    for (mk_str rest = mk_buf_str(&text); ok && rest.len;) {
        mk_str line = mk_str_cut(&rest, '\n');
        line = mk_str_trim(mk_str_ends(line, MK_STR("\r")) ? mk_str_first(line, line.len - 1) : line);
        const char *problem = (number++, is_rest_empty(line)) ? NULL : parse_line(env, line);
        if (problem)
            mk_buf_addf(errors, "%s:%u: error: %s\n", path, number, problem);
        ok = !problem;
    }
    mk_buf_free(&text);
    if (!fill_vars(env)) {
        mk_buf_addf(errors, "%s:1: error: the file has too many variables\n", path);
        ok = false;
    }
    return ok;
}

void dev_env_free(struct dev_env *env)
{
    dev_argv_free(&env->own);
}
