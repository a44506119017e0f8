/* SPDX-License-Identifier: Apache-2.0 */
#include "include.h"

#include "places.h"
#include "source.h"

#include <glob.h>
#include <monkey/text.h>
#include <string.h>

enum { DEPTH_MAX = 8, FILES_MAX = 256, TEXT_MAX = 1024 * 1024 };

struct reading {
    const char *section, *key;
    struct mk_buf *files;
    bool found, in_section;
    unsigned depth, n;
};

static void read_file(struct reading *r, const char *path);

/* `@INCLUDE` names a file, or many by a pattern, relative to the folder of the file. */
static void read_include(struct reading *r, const char *path, mk_str pattern)
{
    char full[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int len = slash && pattern.p[0] != '/' ? (int)(slash - path) + 1 : 0;
    glob_t found;
    if (!dev_places_print(full, "%.*s%.*s", len, path, MK_STR_ARG(pattern)) ||
        glob(full, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        read_file(r, found.gl_pathv[i]);
    globfree(&found);
}

static void read_line(struct reading *r, const char *path, mk_str line)
{
    mk_str rest = mk_str_trim(line), word = mk_str_word(&rest);
    rest = mk_str_trim(rest);
    if (mk_str_eq_nocase(word, MK_STR("@INCLUDE")) && rest.len) {
        read_include(r, path, rest);
    } else if (word.len > 2 && word.p[0] == '[') {
        mk_str name = mk_str_of(word.p + 1, mk_str_find(mk_str_skip(word, 1), ']'));
        r->in_section =
            name.len < word.len && r->section && mk_str_eq_nocase(name, mk_str_from_c(r->section));
        r->found = r->found || (r->in_section && !r->key);
    } else if (r->in_section && r->key) {
        r->found = r->found || mk_str_eq_nocase(word, mk_str_from_c(r->key));
    }
}

static void read_file(struct reading *r, const char *path)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    if (r->depth++ < DEPTH_MAX && r->n++ < FILES_MAX && dev_source_slurp(path, &text)) {
        mk_str rest = mk_buf_str(&text);
        if (r->files)
            mk_buf_addf(r->files, "%s\n", path);
        while (rest.len)
            read_line(r, path, mk_str_cut(&rest, '\n'));
    }
    r->depth--;
    mk_buf_free(&text);
}

bool dev_include_have(const char *path, const char *section, const char *key)
{
    struct reading r = {.section = section, .key = key};
    read_file(&r, path);
    return r.found;
}

void dev_include_list(const char *path, struct mk_buf *files)
{
    struct reading r = {.files = files};
    size_t before = files->len;
    read_file(&r, path);
    if (files->len == before) /* it is not there now */
        mk_buf_addf(files, "%s\n", path);
}
