/* SPDX-License-Identifier: Apache-2.0 */
#include "messages.h"

#include <monkey/text.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 4 * 1024 * 1024, SYMBOL_MAX = 512 };

static void replace_buf_content(struct mk_buf *text, struct mk_buf *by)
{
    mk_buf_free(text);
    *text = *by;
}

/* ---- Locations ---- */

/* Returns the length of a leading "FILE:LINE"; 0 if there is none. */
static size_t location_len(mk_str s)
{
    size_t colon = mk_str_find(s, ':'), n = colon + 1;
    if (colon == MK_STR_NONE || colon == 0 || s.p[0] != '/')
        return 0;
    while (n < s.len && mk_char_is_digit(s.p[n]))
        n++;
    return n > colon + 1 && n < s.len && s.p[n] == ':' ? n : 0;
}

/* Turns "error: /a/b.c:5: TEXT" into "/a/b.c:5: error: TEXT". */
static void append_message(struct mk_buf *out, mk_str line)
{
    mk_str rest = line, severity = mk_str_cut(&rest, ' ');
    size_t location = rest.p ? location_len(rest) : 0;
    bool is_one = mk_str_eq(severity, MK_STR("error:")) || mk_str_eq(severity, MK_STR("warning:"));
    if (is_one && location)
        mk_buf_addf(out, "%.*s: %.*s%.*s\n", MK_STR_ARG(mk_str_first(rest, location)), MK_STR_ARG(severity),
                    MK_STR_ARG(mk_str_skip(rest, location + 1)));
    else
        mk_buf_addf(out, "%.*s\n", MK_STR_ARG(line));
}

/* Returns the text after "FOLDER/back.conf:2:5: "; absent if the line has no such prefix. */
static mk_str skip_internal_location(mk_str line, mk_str folder)
{
    if (!folder.len || !mk_str_starts(line, folder) || line.p[folder.len] != '/')
        return MK_STR_NULL;
    size_t end = 0;
    while (end + 1 < line.len && (line.p[end] != ':' || line.p[end + 1] != ' '))
        end++;
    return end + 1 < line.len ? mk_str_skip(line, end + 2) : MK_STR_NULL;
}

void dev_messages_strip_internal_paths(struct mk_buf *text, const char *folder)
{
    struct mk_buf out = mk_buf_growing(TEXT_MAX);
    mk_str rest = mk_buf_str(text), inner = mk_str_from_c(folder);
    bool skips = false; /* skip the quoted line of a file below `folder`, and the marker below that line */
    while (rest.len) {
        mk_str line = mk_str_cut(&rest, '\n'), message = skip_internal_location(line, inner);
        bool is_indented = mk_str_starts(line, MK_STR("    ")) && !mk_str_starts(line, MK_STR("    hint: "));
        if (message.p)
            append_message(&out, message);
        else if (!(skips && is_indented))
            mk_buf_addf(&out, "%.*s\n", MK_STR_ARG(line));
        skips = message.p || (skips && is_indented);
    }
    replace_buf_content(text, &out);
}

/* ---- Symbols ---- */

static const mk_str undefined = MK_STR_INIT("undefined reference to `");

/* Returns false if the line does not report an undefined symbol. */
static bool parse_undefined_symbol(mk_str line, char symbol[SYMBOL_MAX])
{
    const char *at = line.len ? memmem(line.p, line.len, undefined.p, undefined.len) : NULL;
    mk_str name = at ? mk_str_skip(line, (size_t)(at - line.p) + undefined.len) : MK_STR_NULL;
    int len = snprintf(symbol, SYMBOL_MAX, "%.*s", MK_STR_ARG(mk_str_first(name, mk_str_find(name, '\''))));
    return at && len > 0 && len < SYMBOL_MAX;
}

/* Returns whether the line is only context. The linker prints "LINKER: OBJECT: in function `f':" before its
 * messages about f, and "more ... follow" after them. */
static bool is_linker_context_line(mk_str line)
{
    static const char mark[] = ": in function `";
    const char *at = memmem(line.p ? line.p : "", line.len, mark, sizeof mark - 1);
    bool goes_on = memmem(line.p ? line.p : "", line.len, "more undefined references to", 28);
    return goes_on || (at && memmem(line.p, (size_t)(at - line.p), ".o", 2));
}

static void append_undefined_error(struct mk_buf *out, mk_str line, const char *symbol)
{
    size_t location = location_len(line), program = mk_str_find(line, ' ');
    if (!location && program != MK_STR_NONE && program > 0 && line.p[program - 1] == ':') {
        line = mk_str_skip(line, program + 1); /* for all but the first symbol: "LINKER: FILE:LINE: ..." */
        location = location_len(line);
    }
    if (location)
        mk_buf_addf(out, "%.*s: ", MK_STR_ARG(mk_str_first(line, location)));
    mk_buf_addf(out, "error: `%s` is used, but not defined\n", symbol);
}

bool dev_messages_check_undefined(struct mk_buf *messages, bool (*is_known)(const char *symbol))
{
    struct mk_buf out = mk_buf_growing(TEXT_MAX);
    mk_str rest = mk_buf_str(messages);
    char symbol[SYMBOL_MAX];
    bool ok = true;
    while (rest.len) {
        mk_str line = mk_str_cut(&rest, '\n');
        if (!parse_undefined_symbol(line, symbol)) {
            if (!is_linker_context_line(line))
                mk_buf_addf(&out, "%.*s\n", MK_STR_ARG(line));
        } else if (!is_known(symbol)) {
            append_undefined_error(&out, line, symbol);
            ok = false;
        }
    }
    replace_buf_content(messages, &out);
    return ok;
}

/* ---- Names of the C library ---- */

static bool is_identifier_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || c == '_';
}

/* The first identifier of the text, which may have quotes and escape sequences of a terminal before it. */
static mk_str find_identifier(mk_str s)
{
    size_t i = 0, n = 0;
    while (i < s.len && !is_identifier_char(s.p[i])) {
        bool is_escape = s.p[i] == '\x1b';
        while (is_escape && i + 1 < s.len && !mk_char_is_alpha(s.p[i]))
            i++;
        i++;
    }
    while (i + n < s.len && is_identifier_char(s.p[i + n]))
        n++;
    return n ? mk_str_first(mk_str_skip(s, i), n) : MK_STR_NULL;
}

/* The name in a line such as "error: conflicting types for 'NAME'"; absent in other lines. */
static mk_str find_conflicting_name(mk_str line)
{
    static const mk_str marks[] = {MK_STR_INIT("conflicting types for "),
                                   MK_STR_INIT("static declaration of ")};
    for (size_t i = 0; line.len && i < MK_LEN(marks); i++) {
        const char *at = memmem(line.p, line.len, marks[i].p, marks[i].len);
        if (at)
            return find_identifier(mk_str_skip(line, (size_t)(at - line.p) + marks[i].len));
    }
    return MK_STR_NULL;
}

static bool is_library_declaration(mk_str line)
{
    return line.len && memmem(line.p, line.len, "/usr/include/", 13) &&
           memmem(line.p, line.len, "previous declaration", 20);
}

void dev_messages_explain_conflicts(struct mk_buf *messages)
{
    struct mk_buf out = mk_buf_growing(TEXT_MAX);
    mk_str rest = mk_buf_str(messages), name = MK_STR_NULL;
    while (rest.len) {
        mk_str line = mk_str_cut(&rest, '\n'), found = find_conflicting_name(line);
        mk_buf_addf(&out, "%.*s\n", MK_STR_ARG(line));
        name = found.p ? found : name;
        if (!name.p || !is_library_declaration(line))
            continue;
        mk_buf_addf(&out, "    hint: the C library has a function `%.*s`: choose another name\n",
                    MK_STR_ARG(name));
        name = MK_STR_NULL;
    }
    replace_buf_content(messages, &out);
}

/* ---- Duplicate definitions ---- */

/* Returns the "/FILE:LINE" at the end of "LINKER: OBJECT:/FILE:LINE"; absent if the linker printed a
 * section. */
static mk_str last_location(mk_str text)
{
    size_t from = 0;
    for (size_t i = 1; i < text.len; i++)
        if (text.p[i] == '/' && text.p[i - 1] == ':')
            from = i;
    mk_str found = mk_str_skip(text, from);
    size_t colon = mk_str_find_last(found, ':');
    bool is_one = found.len && found.p[0] == '/' && colon != MK_STR_NONE && colon + 1 < found.len;
    for (size_t i = colon + 1; is_one && i < found.len; i++)
        is_one = mk_char_is_digit(found.p[i]);
    return is_one ? found : MK_STR_NULL;
}

/* Replaces "WHERE: multiple definition of `NAME'; FIRST: first defined here" with a message in the format of
 * a compiler. Returns false for any other line. */
static bool append_duplicate_error(struct mk_buf *out, mk_str line)
{
    static const mk_str mark = MK_STR_INIT(": multiple definition of `"),
                        end = MK_STR_INIT(": first defined here");
    const char *at = line.len ? memmem(line.p, line.len, mark.p, mark.len) : NULL;
    if (!at)
        return false;
    mk_str where = last_location(mk_str_first(line, (size_t)(at - line.p)));
    mk_str rest = mk_str_skip(line, (size_t)(at - line.p) + mark.len);
    mk_str name = mk_str_first(rest, mk_str_find(rest, '\''));
    mk_str first =
        mk_str_ends(rest, end) ? last_location(mk_str_first(rest, rest.len - end.len)) : MK_STR_NULL;
    if (where.p)
        mk_buf_addf(out, "%.*s: ", MK_STR_ARG(where));
    mk_buf_addf(out, "error: `%.*s` is defined in several files of the service", MK_STR_ARG(name));
    if (first.p)
        mk_buf_addf(out, ", first in %.*s", MK_STR_ARG(first));
    mk_buf_add_char(out, '\n');
    return true;
}

static bool is_linker_exit_line(mk_str line)
{
    static const mk_str known[] = {MK_STR_INIT("ld returned 1 exit status"),
                                   MK_STR_INIT("linker command failed with exit code 1")};
    return line.len && (memmem(line.p, line.len, known[0].p, known[0].len) ||
                        memmem(line.p, line.len, known[1].p, known[1].len));
}

void dev_messages_explain_duplicates(struct mk_buf *messages)
{
    struct mk_buf out = mk_buf_growing(TEXT_MAX);
    bool any = false;
    for (mk_str rest = mk_buf_str(messages); rest.len;) {
        mk_str line = mk_str_cut(&rest, '\n');
        bool is_one = append_duplicate_error(&out, line);
        any = any || is_one;
        if (!is_one && !(any && is_linker_exit_line(line)))
            mk_buf_addf(&out, "%.*s\n", MK_STR_ARG(line));
    }
    replace_buf_content(messages, &out);
}
