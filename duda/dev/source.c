/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"

#include "argv.h"
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <monkey/str.h>
#include <stdlib.h>
#include <unistd.h>

bool dev_source_read_file(const char *path, struct mk_buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n = fd < 0 ? -1 : 0;
    char buf[16 * 1024];
    while (fd >= 0 && (n = read(fd, buf, sizeof buf)) > 0)
        mk_buf_add(out, mk_str_of(buf, (size_t)n));
    int e = n < 0 ? errno : out->failed ? EFBIG : 0;
    if (fd >= 0)
        close(fd);
    errno = e;
    return e == 0;
}

/* ---- Comments and code ---- */

static bool is_word_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || c == '_';
}

/* Returns the length of the comment at this position; 0 if there is none. */
static size_t comment_len(mk_str s)
{
    if (s.len < 2 || s.p[0] != '/' || (s.p[1] != '/' && s.p[1] != '*'))
        return 0;
    size_t i = 2;
    if (s.p[1] == '/') {
        while (i < s.len && s.p[i] != '\n')
            i++;
        return i;
    }
    while (i < s.len && !(s.p[i] == '/' && s.p[i - 1] == '*' && i > 2))
        i++;
    return i < s.len ? i + 1 : i;
}

static size_t literal_len(mk_str s)
{
    if (s.p[0] != '"' && s.p[0] != '\'')
        return 0;
    size_t i = 1;
    while (i < s.len && s.p[i] != s.p[0] && s.p[i] != '\n')
        i += s.p[i] == '\\' ? 2 : 1;
    return i < s.len ? i + 1 : s.len;
}

static bool parse_directive(mk_str line, mk_str key, struct mk_buf *out)
{
    if (!mk_str_starts(line, key))
        return false;
    line = mk_str_trim(mk_str_skip(line, key.len));
    if (mk_str_ends(line, MK_STR("*/")))
        line = mk_str_first(line, line.len - 2);
    mk_buf_add(out, line);
    mk_buf_add_char(out, ' ');
    return true;
}

bool dev_source_is_cpp(mk_str name)
{
    static const char *const ends[] = {".cpp", ".cc", ".cxx", ".c++", ".C"};
    for (size_t i = 0; i < MK_LEN(ends); i++)
        if (mk_str_ends(name, mk_str_from_c(ends[i])))
            return true;
    return false;
}

bool dev_source_is_code(mk_str name)
{
    return mk_str_ends(name, MK_STR(".c")) || dev_source_is_cpp(name);
}

/* Moves file names from the flags to the sources. The compiler would also accept them among the flags, but
 * they would be neither watched nor part of the cache key. */
static void move_files_out_of_flags(struct dev_source *s)
{
    struct mk_buf flags = mk_buf_growing(16 * 1024);
    mk_str rest = mk_buf_str(&s->flags), before = MK_STR("");
    while ((rest = mk_str_trim(rest)).len) {
        mk_str word = mk_str_cut(&rest, ' ');
        bool is_included = mk_str_eq(before, MK_STR("-include")) || mk_str_eq(before, MK_STR("-imacros"));
        bool is_file = !is_included && word.p[0] != '-' && dev_source_is_code(word);
        mk_buf_addf(is_file ? &s->sources : &flags, "%.*s ", MK_STR_ARG(word));
        before = word;
    }
    mk_buf_free(&s->flags);
    s->flags = flags;
}

/* Parses lines `pkg-config: NAME...`, `sources: FILE.c...` and `cflags: FLAG...` in a comment. */
static void parse_comment(struct dev_source *s, mk_str comment)
{
    while (comment.p) {
        mk_str line = mk_str_trim(mk_str_cut(&comment, '\n'));
        while (line.len && (line.p[0] == '/' || line.p[0] == '*' || line.p[0] == ' '))
            line = mk_str_skip(line, 1);
        bool is_taken = parse_directive(line, MK_STR("pkg-config:"), &s->packages) ||
                        parse_directive(line, MK_STR("sources:"), &s->sources);
        if (!is_taken && parse_directive(line, MK_STR("cflags:"), &s->flags))
            move_files_out_of_flags(s);
    }
}

static bool copy_service_name(char name[DEV_NAME_MAX], mk_str from)
{
    size_t n = 0;
    for (size_t i = 0; i < from.len && n < DEV_NAME_MAX - 1; i++) {
        char c = mk_char_lower(from.p[i]);
        if (mk_char_is_alpha(c) || mk_char_is_digit(c))
            name[n++] = c;
    }
    name[n] = '\0';
    return n > 0;
}

/* Parses DUDA_SERVICE(name, ...) in the code. */
static size_t parse_service_macro(struct dev_source *s, mk_str rest)
{
    static const mk_str macro = MK_STR_INIT("DUDA_SERVICE");
    mk_str all = rest;
    if (!mk_str_starts(rest, macro))
        return 0;
    rest = mk_str_skip(rest, macro.len);
    while (rest.len && strchr(" \t\r\n", rest.p[0]))
        rest = mk_str_skip(rest, 1);
    if (!rest.len || rest.p[0] != '(')
        return 0;
    rest = mk_str_trim(mk_str_skip(rest, 1));
    size_t n = 0;
    while (n < rest.len && is_word_char(rest.p[n]))
        n++;
    if (!n || n >= DEV_NAME_MAX)
        return 0;
    memcpy(s->name, rest.p, n);
    s->name[n] = '\0';
    s->is_service = true;
    return (size_t)(rest.p - all.p) + n;
}

static size_t word_len(mk_str s)
{
    size_t n = 0;
    while (n < s.len && is_word_char(s.p[n]))
        n++;
    return n;
}

/* Finds a function `handle(struct duda_ctx ...` in the code. */
static void parse_handle_function(struct dev_source *s, mk_str rest)
{
    static const mk_str name = MK_STR_INIT("handle"), type = MK_STR_INIT("struct"),
                        ctx = MK_STR_INIT("duda_ctx");
    if (!mk_str_starts(rest, name))
        return;
    rest = mk_str_trim(mk_str_skip(rest, name.len));
    if (!rest.len || rest.p[0] != '(')
        return;
    rest = mk_str_trim(mk_str_skip(rest, 1));
    if (mk_str_starts(rest, type))
        rest = mk_str_trim(mk_str_skip(rest, type.len));
    s->has_handle = s->has_handle || mk_str_starts(rest, ctx);
}

static unsigned line_number_of(mk_str text, mk_str rest)
{
    unsigned line = 1;
    for (const char *at = text.p; at < rest.p; at++)
        line += *at == '\n';
    return line;
}

void dev_source_parse(struct dev_source *s, mk_str file_name)
{
    mk_str rest = mk_buf_str(&s->text);
    while (rest.len) {
        size_t n = comment_len(rest);
        if (n)
            parse_comment(s, mk_str_first(rest, n));
        if (!n)
            n = literal_len(rest);
        if (!n)
            parse_handle_function(s, rest);
        if (!n && !s->is_service && (n = parse_service_macro(s, rest)))
            s->line = line_number_of(mk_buf_str(&s->text), rest);
        if (!n)
            n = word_len(rest);
        rest = mk_str_skip(rest, n ? n : 1);
    }
    size_t dot = mk_str_find_last(file_name, '.');
    if (!s->is_service &&
        !copy_service_name(s->name, dot == MK_STR_NONE ? file_name : mk_str_first(file_name, dot)))
        memcpy(s->name, "service", sizeof "service");
}

/* ---- Files ---- */

enum { LIST_MAX = 1024 * 1024 };

static bool load_file(struct dev_source *s, const char *path)
{
    *s = (struct dev_source){.text = mk_buf_growing(DEV_SOURCE_MAX),
                             .packages = mk_buf_growing(4096),
                             .flags = mk_buf_growing(16 * 1024),
                             .sources = mk_buf_growing(16 * 1024),
                             .others = mk_buf_growing(LIST_MAX),
                             .objects = mk_buf_growing(LIST_MAX),
                             .errors = mk_buf_growing(LIST_MAX)};
    if (!realpath(path, s->path))
        return false;
    if (!dev_source_read_file(s->path, &s->text)) {
        int e = errno;
        dev_source_free(s);
        errno = e;
        return false;
    }
    mk_str name = mk_str_from_c(s->path);
    dev_source_parse(s, mk_str_skip(name, mk_str_find_last(name, '/') + 1));
    return true;
}

/* Formats the path of a file that a comment names, relative to the folder of the file with the comment. */
static bool resolve_path(const char *from, mk_str name, char path[PATH_MAX])
{
    const int folder = name.p[0] == '/' ? 0 : (int)(strrchr(from, '/') - from) + 1;
    return dev_paths_format(path, "%.*s%.*s", folder, from, MK_STR_ARG(name));
}

/* Returns the option with which the word begins if that option takes a path, in the same word or in the next
 * one; absent if there is none. */
static mk_str path_option(mk_str word)
{
    static const mk_str known[] = {
        MK_STR_INIT("-include"), MK_STR_INIT("-imacros"), MK_STR_INIT("-isystem"), MK_STR_INIT("-idirafter"),
        MK_STR_INIT("-iquote"),  MK_STR_INIT("-I"),       MK_STR_INIT("-L")};
    for (size_t i = 0; i < MK_LEN(known); i++)
        if (mk_str_starts(word, known[i]))
            return known[i];
    return MK_STR_NULL;
}

static bool is_object(mk_str word)
{
    return mk_str_ends(word, MK_STR(".o")) || mk_str_ends(word, MK_STR(".a")) ||
           mk_str_ends(word, MK_STR(".so"));
}

/* Appends the option. Its path is relative to the folder of the file with the comment; if there is no such
 * file, it remains relative to the current folder. */
static void append_path_option(struct mk_buf *flags, const char *from, mk_str option, mk_str path)
{
    char resolved[PATH_MAX];
    if (resolve_path(from, path, resolved) && access(resolved, F_OK) == 0 && !strpbrk(resolved, " \t\n"))
        mk_buf_addf(flags, "%.*s %s ", MK_STR_ARG(option), resolved);
    else
        mk_buf_addf(flags, "%.*s %.*s ", MK_STR_ARG(option), MK_STR_ARG(path));
}

/* Makes the paths in the flags of a file absolute, and moves objects to a list of their own, because they are
 * watched like sources. */
static void resolve_flags(struct dev_source *s, struct mk_buf *objects)
{
    struct mk_buf flags = mk_buf_growing(64 * 1024);
    mk_str rest = mk_buf_str(&s->flags), word, option;
    char path[PATH_MAX];
    while ((word = dev_argv_next_word(&rest)).len) {
        option = path_option(word);
        if (option.p && option.len < word.len)
            append_path_option(&flags, s->path, option, mk_str_skip(word, option.len));
        else if (option.p)
            append_path_option(&flags, s->path, option, dev_argv_next_word(&rest));
        else if (word.p[0] != '-' && is_object(word) && resolve_path(s->path, word, path) &&
                 access(path, F_OK) == 0)
            mk_buf_addf(objects, "%s\n", path);
        else
            mk_buf_addf(&flags, "%.*s ", MK_STR_ARG(word));
    }
    mk_buf_free(&s->flags);
    s->flags = flags;
}

static bool list_has_file(const struct dev_source *s, const char *path)
{
    mk_str rest = mk_buf_str(&s->others);
    if (strcmp(path, s->path) == 0)
        return true;
    while (rest.len)
        if (mk_str_eq(mk_str_cut(&rest, '\n'), mk_str_from_c(path)))
            return true;
    return false;
}

/* Adds the sources that the comments of one file name. A missing file is an error, and is watched. */
static void add_named_sources(struct dev_source *s, const struct dev_source *file)
{
    char path[PATH_MAX], real[PATH_MAX];
    mk_str rest = mk_buf_str(&file->sources), word;
    while ((word = dev_argv_next_word(&rest)).len) {
        if (mk_str_ends(word, MK_STR(",")))
            word = mk_str_first(word, word.len - 1);
        if (!dev_source_is_code(word) || !resolve_path(file->path, word, path))
            continue;
        if (realpath(path, real)) {
            dev_source_add(s, real);
            continue;
        }
        mk_buf_addf(&s->others, "%s\n", path);
        mk_buf_addf(&s->errors, "%s:1: error: `sources: %.*s`: there is no such file\n", file->path,
                    MK_STR_ARG(word));
    }
}

void dev_source_add(struct dev_source *s, const char *path)
{
    struct dev_source other;
    if (list_has_file(s, path))
        return;
    mk_buf_addf(&s->others, "%s\n", path);
    if (!load_file(&other, path)) {
        mk_buf_addf(&s->errors, "%s:1: error: %s\n", path, strerror(errno));
        return;
    }
    resolve_flags(&other, &s->objects);
    mk_buf_add(&s->flags, mk_buf_str(&other.flags));
    mk_buf_add(&s->packages, mk_buf_str(&other.packages));
    add_named_sources(s, &other);
    dev_source_free(&other);
}

bool dev_source_load(struct dev_source *s, const char *path)
{
    if (!load_file(s, path))
        return false;
    resolve_flags(s, &s->objects);
    add_named_sources(s, s);
    return true;
}

void dev_source_free(struct dev_source *s)
{
    mk_buf_free(&s->text);
    mk_buf_free(&s->packages);
    mk_buf_free(&s->flags);
    mk_buf_free(&s->sources);
    mk_buf_free(&s->others);
    mk_buf_free(&s->objects);
    mk_buf_free(&s->errors);
}
