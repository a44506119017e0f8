/* SPDX-License-Identifier: Apache-2.0 */
#include "allow_list.h"

#include <errno.h>
#include <fcntl.h>
#include <monkey/mem.h>
#include <monkey/text.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hostname.h"

enum { FILE_MAX = 16 << 20, SHOWN_MAX = 100, ERRORS_MAX = 20 };

/* ---- Looking up ---- */

static int compare_texts(const void *a, const void *b)
{
    const mk_str *x = a, *y = b;
    int order = memcmp(x->p, y->p, x->len < y->len ? x->len : y->len);
    return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

static bool contains(const struct acme_allow_list *list, mk_str text)
{
    return list->n && bsearch(&text, list->names, list->n, sizeof text, compare_texts);
}

bool acme_allow_list_has(const struct acme_allow_list *list, mk_str name)
{
    bool found = contains(list, name);
    for (size_t i = 1; !found && i < name.len; i++)
        found = name.p[i] == '.' && contains(list, mk_str_skip(name, i));
    return found;
}

/* ---- Reading ---- */

/* Returns the content with a NUL at its end, in memory of the configuration; NULL: an error was reported. */
static char *read_file(struct mk_config *config, const void *section, const char *path, size_t *len)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const char *error = fd < 0 || fstat(fd, &st) < 0 ? strerror(errno)
                        : !S_ISREG(st.st_mode)       ? "it is not a regular file"
                        : st.st_size > FILE_MAX      ? "it has more than 16 MB"
                                                     : NULL;
    char *text = error ? NULL : mk_config_alloc(config, (size_t)st.st_size + 1);
    ssize_t n = text ? read(fd, text, (size_t)st.st_size) : 0;
    if (!error && (!text || n < 0))
        error = text ? strerror(errno) : "out of memory";
    if (fd >= 0)
        close(fd);
    if (error)
        mk_config_error(config, section, "AllowFile", "%s cannot be read: %s", path, error);
    *len = n > 0 ? (size_t)n : 0;
    return error ? NULL : text;
}

/* Makes the line lower case. Returns false if it is neither a name nor a comment. */
static bool add_line(struct acme_allow_list *list, char *line, size_t len)
{
    mk_str name = mk_str_trim(mk_str_of(line, len));
    for (size_t i = 0; i < len; i++)
        line[i] = mk_char_lower(line[i]);
    if (!name.len || name.p[0] == '#')
        return true;
    bool is_domain = mk_str_starts(name, MK_STR("*."));
    if (!acme_hostname_is_public(is_domain ? mk_str_skip(name, 2) : name))
        return false;
    list->names[list->n++] = mk_str_skip(name, is_domain);
    return true;
}

static size_t count_lines(mk_str text)
{
    size_t n = 1;
    for (size_t i = 0; i < text.len; i++)
        n += text.p[i] == '\n';
    return n;
}

/* Removes the first line from the text. */
static mk_str cut_line(mk_str *rest)
{
    mk_str line = mk_str_cut(rest, '\n');
    return mk_str_ends(line, MK_STR("\r")) ? mk_str_first(line, line.len - 1) : line;
}

void acme_allow_list_read(struct mk_config *config, const void *section, const char *path,
                          struct acme_allow_list *list)
{
    size_t len;
    unsigned number = 0, n_errors = 0;
    char *text = read_file(config, section, path, &len);
    if (!text)
        return;
    mk_str rest = mk_str_of(text, len);
    list->names = mk_config_alloc(config, count_lines(rest) * sizeof *list->names);
    while (list->names && rest.len && n_errors < ERRORS_MAX) {
        char shown[SHOWN_MAX];
        mk_str line = cut_line(&rest);
        size_t n_shown = line.len < SHOWN_MAX ? line.len : SHOWN_MAX;
        memcpy(shown, line.p, n_shown);
        number++;
        if (add_line(list, text + (line.p - text), line.len))
            continue;
        mk_config_error(config, section, "AllowFile",
                        "%s:%u: expected a name such as shop.example.com, or *.example.com: `%.*s`%s", path,
                        number, (int)n_shown, shown,
                        ++n_errors == ERRORS_MAX ? "; no further lines are checked" : "");
    }
    if (list->n)
        qsort(list->names, list->n, sizeof *list->names, compare_texts);
}
