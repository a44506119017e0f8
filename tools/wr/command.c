/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/command.h"

#include "load/url.h"
#include "wr/message.h"

static size_t count_words(char *const *words)
{
    size_t n = 0;
    while (words[n])
        n++;
    return n;
}

static void report_unknown_client(const char *program)
{
    char room[256];
    struct mk_buf names = mk_buf_fixed(room, sizeof room);
    for (const struct wr_client_type *k = wr_client_type_all(); k->name; k++)
        mk_buf_addf(&names, "%s%s", names.len ? ", " : "", k->name);
    wr_message("cannot read the output of \"%s\"; wr supports %.*s", program, MK_STR_ARG(mk_buf_str(&names)));
}

static bool has_word_with_prefix(const struct wr_command *c, mk_str prefix)
{
    for (size_t i = 1; i < c->n; i++)
        if (mk_str_starts(mk_str_from_c(c->words[i]), prefix))
            return true;
    return false;
}

bool wr_command_init(struct wr_command *c, char *const *words, struct mk_arena *arena)
{
    *c = (struct wr_command){.words = words, .n = count_words(words)};
    c->kind = wr_client_type_find(mk_str_from_c(words[0]));
    if (!c->kind) {
        report_unknown_client(words[0]);
        return false;
    }
    if (mk_str_eq(mk_str_from_c(c->kind->name), MK_STR("h2load")) && has_word_with_prefix(c, MK_STR("--wa")))
        return wr_message_error(
            "h2load does not report the requests of its --warm-up-time, so wr cannot compute figures "
            "per request: use wr's own --warm-up");
    c->fields = mk_arena_zalloc(arena, c->n + 1, sizeof *c->fields);
    if (!c->fields)
        return wr_message_error("out of memory");
    size_t n = 0;
    for (size_t i = 1; i + 1 < c->n; i++)
        if (strcmp(words[i], "-H") == 0)
            c->fields[n++] = words[i + 1];
    return true;
}

static char *copy_str(struct mk_arena *arena, mk_str s)
{
    const char *p = s.p ? mk_arena_copy(arena, s).p : NULL;
    char *text;
    memcpy(&text, &p,
           sizeof text); /* drops const: the text is in the arena, and argv needs writable strings */
    return text;
}

char **wr_command_from_url(char *url, uint64_t requests, bool keep_alive, struct mk_arena *arena)
{
    enum { WORDS = 8 };
    char **words = mk_arena_zalloc(arena, WORDS, sizeof *words);
    mk_str requests_text = mk_arena_printf(arena, "%llu", (unsigned long long)requests);
    if (!words || !requests_text.p)
        return NULL;
    size_t n = 0;
    words[n++] = copy_str(arena, MK_STR("weighttp"));
    words[n++] = copy_str(arena, MK_STR("-n"));
    words[n++] = copy_str(arena, requests_text);
    words[n++] = copy_str(arena, MK_STR("-t"));
    words[n++] = copy_str(arena, MK_STR("10"));
    if (keep_alive)
        words[n++] = copy_str(arena, MK_STR("-k"));
    for (size_t i = 0; i < n; i++)
        if (!words[i])
            return NULL;
    words[n] = url;
    return words;
}

static bool has_any_word(const struct wr_command *c, const char *const *which)
{
    for (size_t i = 1; i < c->n; i++)
        for (const char *const *w = which; *w; w++)
            if (strcmp(c->words[i], *w) == 0)
                return true;
    return false;
}

static mk_str replace_placeholder(struct mk_arena *arena, mk_str word, mk_str what, unsigned number)
{
    const char *at = memmem(word.p, word.len, what.p, what.len);
    size_t before = (size_t)(at - word.p);
    mk_str rest = mk_str_skip(word, before + what.len);
    return mk_arena_printf(arena, "%.*s%u%.*s", MK_STR_ARG(mk_str_first(word, before)), number,
                           MK_STR_ARG(rest));
}

static bool has_placeholder(mk_str word)
{
    return memmem(word.p, word.len, "{c}", 3) != NULL;
}

bool wr_command_has_placeholder(const struct wr_command *c)
{
    for (size_t i = 1; i < c->n; i++)
        if (has_placeholder(mk_str_from_c(c->words[i])))
            return true;
    return false;
}

static bool is_number(mk_str s)
{
    uint64_t n;
    return mk_num_parse(s, &n);
}

/* Finds the value of the client's option: the next word, or the rest of the same word (-c10). */
static size_t find_concurrency_value(const struct wr_command *c, size_t *skip)
{
    mk_str option = mk_str_from_c(c->kind->concurrency);
    for (size_t i = 1; i < c->n; i++) {
        mk_str word = mk_str_from_c(c->words[i]);
        *skip = 0;
        if (mk_str_eq(word, option) && i + 1 < c->n)
            return i + 1;
        *skip = option.len;
        if (mk_str_starts(word, option) && is_number(mk_str_skip(word, option.len)))
            return i;
    }
    return 0;
}

unsigned wr_command_concurrency(const struct wr_command *c)
{
    size_t skip, at = find_concurrency_value(c, &skip);
    uint64_t n;
    return at && mk_num_parse(mk_str_skip(mk_str_from_c(c->words[at]), skip), &n) && n <= UINT32_MAX
               ? (unsigned)n
               : 0;
}

/* Returns whether the word is a group of short options of which the last one is -c, with or without a number,
 * such as -kc100 or -kc. */
static bool is_cluster_ending_in_c(mk_str word)
{
    if (word.len < 3 || word.p[0] != '-' || word.p[1] == '-')
        return false;
    size_t end = word.len;
    while (end > 0 && mk_char_is_digit(word.p[end - 1]))
        end--;
    if (end < 3 || word.p[end - 1] != 'c')
        return false;
    for (size_t i = 1; i < end; i++)
        if (!mk_char_is_alpha(word.p[i]))
            return false;
    return true;
}

/* getopt_long accepts unique prefixes such as --conn=10; shorter prefixes are ambiguous. */
static bool is_long_option(mk_str word)
{
    static const char *const names[] = {"--connections", "--clients", "--concurrent", "--concurrency"};
    enum { SHORTEST = 5 };
    mk_str name = mk_str_first(word, mk_str_find(word, '='));
    for (size_t i = 0; i < MK_LEN(names) && name.len >= SHORTEST; i++)
        if (mk_str_starts(mk_str_from_c(names[i]), name))
            return true;
    return false;
}

/* Returns the word that sets the concurrency in a form other than the option of this tool; NULL: none. */
const char *wr_command_find_concurrency_conflict(const struct wr_command *c)
{
    mk_str option = mk_str_from_c(c->kind->concurrency);
    for (size_t i = 1; i < c->n; i++) {
        mk_str word = mk_str_from_c(c->words[i]);
        if (mk_str_eq(word, MK_STR("--")))
            break;
        if (i > 1 && mk_str_eq(mk_str_from_c(c->words[i - 1]), MK_STR("-H")))
            continue; /* the value of -H may look like an option */
        if ((is_cluster_ending_in_c(word) && !mk_str_eq(word, option)) || is_long_option(word))
            if (!has_placeholder(word) &&
                !(c->words[i + 1] && has_placeholder(mk_str_from_c(c->words[i + 1]))))
                return c->words[i];
    }
    return NULL;
}

static bool set_concurrency(const struct wr_command *c, char **out, unsigned concurrency,
                            struct mk_arena *arena)
{
    size_t skip, value = find_concurrency_value(c, &skip);
    bool replaced = false;
    for (size_t i = 1; i < c->n; i++) {
        mk_str word = mk_str_from_c(c->words[i]);
        if (!has_placeholder(word))
            continue;
        out[i] = copy_str(arena, replace_placeholder(arena, word, MK_STR("{c}"), concurrency));
        replaced = true;
    }
    if (!replaced && value) {
        mk_str option = mk_str_first(mk_str_from_c(c->words[value]), skip);
        out[value] = copy_str(arena, mk_arena_printf(arena, "%.*s%u", MK_STR_ARG(option), concurrency));
        replaced = true;
    }
    return replaced;
}

char **wr_command_build_argv(const struct wr_command *c, unsigned concurrency, struct mk_arena *arena)
{
    enum { MORE = 2 + MK_LEN(c->kind->adds) };
    char **all = mk_arena_zalloc(arena, c->n + MORE + 1, sizeof *all), **own = all + MORE;
    char *inserted[MORE];
    size_t n = 0;
    if (!all)
        return NULL;
    for (size_t i = 0; i < c->n; i++)
        own[i] = c->words[i];
    if (concurrency && !set_concurrency(c, own, concurrency, arena)) {
        inserted[n++] = copy_str(arena, mk_str_from_c(c->kind->concurrency));
        inserted[n++] = copy_str(arena, mk_arena_printf(arena, "%u", concurrency));
    }
    if (!has_any_word(c, c->kind->has))
        for (size_t i = 0; i < MK_LEN(c->kind->adds) && c->kind->adds[i]; i++)
            inserted[n++] = copy_str(arena, mk_str_from_c(c->kind->adds[i]));
    char **words = own - n;
    words[0] = own[0];
    for (size_t i = 0; i < n; i++)
        words[i + 1] = inserted[i];
    for (size_t i = 0; i < c->n + n; i++)
        if (!words[i])
            return NULL;
    return words;
}

static bool needs_no_quotes(mk_str word)
{
    for (size_t i = 0; i < word.len; i++) {
        char ch = word.p[i];
        if (!mk_char_is_alpha(ch) && !mk_char_is_digit(ch) && !memchr("-_=./:,@%+{}[]", ch, 14))
            return false;
    }
    return word.len > 0;
}

mk_str wr_command_find_url(char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (load_url_has_scheme(mk_str_from_c(words[i])))
            return mk_str_from_c(words[i]);
    return MK_STR_NULL;
}

void wr_command_format(char *const *words, struct mk_buf *out)
{
    for (size_t i = 0; words[i]; i++) {
        mk_str word = mk_str_from_c(words[i]);
        if (i)
            mk_buf_add_char(out, ' ');
        if (needs_no_quotes(word)) {
            mk_buf_add(out, word);
            continue;
        }
        mk_buf_add_char(out, '\'');
        for (size_t k = 0; k < word.len; k++)
            mk_buf_add(out, word.p[k] == '\'' ? MK_STR("'\\''") : mk_str_of(word.p + k, 1));
        mk_buf_add_char(out, '\'');
    }
}
