/* SPDX-License-Identifier: Apache-2.0 */
#include "os/path_glob.h"

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

/* ---- Names ---- */

/* Returns the length of the character class, such as `[a-z]`, at the start of the pattern. The first
 * character in the class may be `]`. 0: the class is unterminated. */
static size_t class_len(mk_str p)
{
    size_t first = p.len > 1 && (p.p[1] == '!' || p.p[1] == '^') ? 2 : 1,
           end = mk_str_find(mk_str_skip(p, first + 1), ']');
    return end == MK_STR_NONE ? 0 : first + 1 + end + 1;
}

static bool class_matches(mk_str class, unsigned char c)
{
    bool is_negated = class.p[1] == '!' || class.p[1] == '^', is_in = false;
    for (size_t i = 1 + is_negated; i + 1 < class.len; i++) {
        unsigned char from = (unsigned char)class.p[i], to = from;
        if (i + 3 < class.len && class.p[i + 1] == '-') {
            i += 2;
            to = (unsigned char)class.p[i];
        }
        is_in |= from <= c && c <= to;
    }
    return is_in != is_negated;
}

/* Returns the length of the first element of the pattern if it matches `c`, else 0. */
static size_t match_char(mk_str p, char c)
{
    size_t len = p.len && p.p[0] == '[' ? class_len(p) : 0;
    if (!p.len)
        return 0;
    if (len)
        return class_matches(mk_str_first(p, len), (unsigned char)c) ? len : 0;
    if (p.p[0] == '\\' && p.len > 1)
        return p.p[1] == c ? 2 : 0;
    return p.p[0] == '?' || p.p[0] == c;
}

static bool is_hidden(mk_str name)
{
    return mk_str_starts(name, MK_STR("."));
}

bool mk_path_glob_matches(mk_str pattern, mk_str name)
{
    mk_str after_star = MK_STR_NULL, retry = name;
    if (is_hidden(name) && !is_hidden(pattern) && !mk_str_starts(pattern, MK_STR("\\.")))
        return false;
    while (name.len) {
        bool is_star = mk_str_starts(pattern, MK_STR("*"));
        size_t len = is_star ? 0 : match_char(pattern, name.p[0]);
        if (is_star) {
            after_star = pattern = mk_str_skip(pattern, 1);
            retry = name;
        } else if (len) {
            pattern = mk_str_skip(pattern, len);
            name = mk_str_skip(name, 1);
        } else if (after_star.p) { /* backtrack: the star matches one more character */
            pattern = after_star;
            name = retry = mk_str_skip(retry, 1);
        } else {
            return false;
        }
    }
    while (mk_str_starts(pattern, MK_STR("*")))
        pattern = mk_str_skip(pattern, 1);
    return pattern.len == 0;
}

/* ---- Paths ---- */

struct path_walk {
    bool (*found)(void *data, mk_str path);
    void *data;
    char path[PATH_MAX];
};

static bool match_components(struct path_walk *w, size_t len, mk_str rest);

/* Appends a name to the path. 0: too long. */
static size_t append_name(struct path_walk *w, size_t len, mk_str name)
{
    if (name.len >= sizeof w->path - len)
        return 0;
    memcpy(w->path + len, name.p, name.len);
    w->path[len + name.len] = '\0';
    return len + name.len;
}

static bool match_folder_entries(struct path_walk *w, size_t len, mk_str component, mk_str rest)
{
    DIR *folder = opendir(len ? w->path : ".");
    bool goes_on = true;
    for (struct dirent *d = folder ? readdir(folder) : NULL; d && goes_on; d = readdir(folder)) {
        mk_str name = mk_str_from_c(d->d_name);
        size_t longer = mk_path_glob_matches(component, name) ? append_name(w, len, name) : 0;
        goes_on = !longer || match_components(w, longer, rest);
    }
    if (folder)
        closedir(folder);
    return goes_on;
}

/* Matches a component without wildcards, with its backslashes removed. */
static bool match_literal_component(struct path_walk *w, size_t len, mk_str component, mk_str rest)
{
    while (component.len) {
        component = mk_str_skip(component, component.p[0] == '\\' && component.len > 1);
        len = append_name(w, len, mk_str_first(component, 1));
        if (!len)
            return true;
        component = mk_str_skip(component, 1);
    }
    return match_components(w, len, rest);
}

static bool has_wildcard(mk_str component)
{
    for (size_t i = 0; i < component.len; i++)
        if (component.p[i] == '*' || component.p[i] == '?' || component.p[i] == '[')
            return true;
    return false;
}

/* Matches the rest of the pattern below the path. False: found() returned false. */
static bool match_components(struct path_walk *w, size_t len, mk_str rest)
{
    struct stat st;
    for (; mk_str_starts(rest, MK_STR("/")); rest = mk_str_skip(rest, 1))
        if (!(len = append_name(w, len, MK_STR("/"))))
            return true;
    if (rest.len == 0)
        return lstat(w->path, &st) < 0 || w->found(w->data, mk_str_of(w->path, len));
    mk_str component = mk_str_first(rest, mk_str_find(rest, '/'));
    rest = mk_str_skip(rest, component.len);
    return has_wildcard(component) ? match_folder_entries(w, len, component, rest)
                                   : match_literal_component(w, len, component, rest);
}

mk_err mk_path_glob(mk_str pattern, bool (*found)(void *data, mk_str path), void *data)
{
    struct path_walk w = {.found = found, .data = data};
    if (pattern.len >= sizeof w.path)
        return -ENAMETOOLONG;
    (void)!match_components(&w, 0, pattern);
    return 0;
}
